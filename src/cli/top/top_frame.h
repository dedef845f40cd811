// The screen of `lockstep top` as lines: exactly as many as the terminal has, none wider. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/text/terminal_text.h"
#include "cli/top/top_rows.h"
#include "cli/top/top_state.h"

namespace lockstep {

struct TopSize {
  size_t columns = 80;
  size_t rows = 24;
};

std::vector<std::string> top_frame(const TopFacts& facts, const TopScreenState& screen,
                                   const TerminalManner& manner, const TopSize& size);
// The same facts as plain lines of any number, for --once and terminals that add lines only.
std::vector<std::string> top_lines(const TopFacts& facts, const TerminalManner& manner);

// How many rows each pane shows of so many: at least one each, and those with more to show, the
// chosen one first, get what is left.
std::array<size_t, kTopPanes> share_rows(const std::array<size_t, kTopPanes>& wanted, size_t rows,
                                         TopPane chosen);

}  // namespace lockstep

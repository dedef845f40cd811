// The dim lines of commands on stderr. WaitLine tells what a command waits for: a terminal gets one
// line that is replaced at most twice a second; where nothing may be repainted, a line is added now
// and then. Without a terminal there is nothing. One thread.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "cli/text/terminal_text.h"

namespace lockstep {

class WaitLine {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kRepaintPeriod{500};
  static constexpr std::chrono::seconds kHeartbeat{30};

  explicit WaitLine(const TerminalManner& manner) : manner_(manner) {}
  ~WaitLine() { clear(); }
  WaitLine(const WaitLine&) = delete;
  WaitLine& operator=(const WaitLine&) = delete;

  // `text` is harmless (harmless_line).
  void show(std::string_view text, Clock::time_point now);
  // Removes the line, so that other text may follow.
  void clear();

 private:
  const TerminalManner manner_;
  std::optional<Clock::time_point> last_;
  bool is_shown_ = false;
};

// A line that stays, dim where the terminal can.
void print_dim(const TerminalManner& manner, std::string_view text);

}  // namespace lockstep

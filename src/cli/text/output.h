// How commands print: results on stdout, everything else on stderr.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes_text.h"
#include "base/result.h"
#include "json/json.h"

namespace lockstep {

inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

// Prints "lockstep: <sentence>" on stderr. kExitUsage if another flag, model or file would have
// worked.
int fail(const Error& error);
int exit_status(const Status& status);  // 0, or that of fail()

void print_line(std::string_view text);  // on stdout, and flushed
void print_json(const Json& value);

std::string counted(uint64_t count, std::string_view noun);  // "1 rank", "2 ranks"

bool stderr_is_terminal();
bool stdout_is_terminal();
// A line of progress, dim, cut at the terminal's width and replaced by the next; no output where
// stderr is no terminal or nothing may be repainted (TerminalManner::may_repaint).
void show_progress(std::string_view text);
void clear_progress();

// Whether stdin is a pipe or a file, which somebody has given to be read.
bool stdin_is_given();
// All of stdin. kCorrupt above `bytes_max`.
Result<std::string> read_stdin(size_t bytes_max);

}  // namespace lockstep

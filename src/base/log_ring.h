// The last lines of this process's log, for GET /cluster/log; base/log.h writes them. Lines are
// numbered from 1 at each start of the process. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"

namespace lockstep {

inline constexpr size_t kLogLinesKept = 1024;
inline constexpr size_t kLogLineBytesKept = 1024;  // of each; the rest is cut off
inline constexpr size_t kLogSecretsMax = 16;
inline constexpr size_t kLogSecretBytesMax = 4096;

struct LogLine {
  uint64_t number = 0;
  int64_t at_ms = 0;  // since 1970
  LogLevel level = LogLevel::kInfo;
  std::string text;  // valid UTF-8, without a line end
};

std::string_view log_level_name(LogLevel level);

void keep_log_line(LogLevel level, int64_t at_ms, std::string_view text);
// Lines after this number, the oldest first. A number that no line has had yet belongs to an
// earlier process: all lines then.
std::vector<LogLine> log_lines_after(uint64_t number, size_t lines_max);

// No line written from now on contains this text, here or on stderr: "***" stands in its place.
// Texts of fewer than 8 bytes, which could be anything, are not hidden, and beyond kLogSecretsMax
// the oldest no more.
void keep_out_of_log(std::string_view secret);
std::string without_secrets(std::string_view text);

}  // namespace lockstep

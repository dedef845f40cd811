// RunMemory: what `lockstep run` remembers between its starts, in the folder of this user's node:
// lines that were typed (run-history) and the last conversation (run-conversation.json), for their
// owner only (0600). Small files; one thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/talk/dialogue.h"

namespace lockstep {

class RunMemory {
 public:
  static constexpr size_t kLinesMax = 1000;
  static constexpr size_t kLineBytesMax = 8 << 10;       // longer ones are not kept
  static constexpr size_t kHistoryBytesMax = 512 << 10;  // the oldest go

  // `is_kept` false: nothing is read or written.
  explicit RunMemory(bool is_kept) : is_kept_(is_kept) {}

  // The oldest first; empty if there are none, or they cannot be read.
  std::vector<std::string> lines() const;
  Status add_line(const std::string& line) const;

  // nullopt: there is none. An error names the file.
  Result<std::optional<Dialogue>> conversation() const;
  Status keep(const Dialogue& conversation) const;

 private:
  static Result<std::filesystem::path> path_of(std::string_view name);

  const bool is_kept_;
};

// A line of the file for each, as a JSON string, so that a message of several lines is one.
std::vector<std::string> parse_history(std::string_view file);
// With `line` at the end, once, within the limits.
std::string history_with(std::string_view file, const std::string& line);

}  // namespace lockstep

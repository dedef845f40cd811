#include "cli/text/code_fence.h"

#include <algorithm>

namespace lockstep {

std::optional<CodeFence> code_fence(std::string_view line) {
  constexpr size_t kMarksMin = 3;
  constexpr std::string_view kSpaces = " \t\r";
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  line.remove_prefix(indent);
  if (line.empty() || indent > kFenceIndentMax || (line[0] != '`' && line[0] != '~')) {
    return std::nullopt;
  }
  const size_t marks = std::min(line.find_first_not_of(line[0]), line.size());
  // Code inside of a line may begin with three backquotes too, and ends with them.
  const bool is_inline = line[0] == '`' && line.find('`', marks) != std::string_view::npos;
  if (marks < kMarksMin || is_inline) return std::nullopt;
  std::string_view info = line.substr(marks);
  info.remove_prefix(std::min(info.find_first_not_of(kSpaces), info.size()));
  info = info.substr(0, info.find_last_not_of(kSpaces) + 1);
  return CodeFence{line.substr(0, marks), info};
}

}  // namespace lockstep

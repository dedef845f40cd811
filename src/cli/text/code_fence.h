// Lines of Markdown that begin or end a block of code: fences of backquotes or tildes (CommonMark
// 0.31, section 4.5), indented a little further too, as in lists. Pure functions.
#pragma once

#include <optional>
#include <string_view>

namespace lockstep {

inline constexpr size_t kFenceIndentMax = 12;

// Views of the line.
struct CodeFence {
  std::string_view marks;  // three or more of the same
  std::string_view info;   // the text after them, mostly a language; without spaces around it

  // `opening`: the marks that began the block.
  bool closes(std::string_view opening) const { return info.empty() && marks.starts_with(opening); }
};

// nullopt: another line, or one that cannot become a fence. `line` has no line end but may have the
// CR of one.
std::optional<CodeFence> code_fence(std::string_view line);

}  // namespace lockstep

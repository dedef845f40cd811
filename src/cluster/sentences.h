// Parts of sentences for people: bytes of memory, and text that fits into a message between nodes.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "cluster/part.h"

namespace lockstep {

inline std::string gib_text(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (int64_t{1} << 30));
}

// Valid UTF-8 of at most kReasonBytesMax bytes.
inline std::string short_sentence(std::string_view text) {
  std::string kept = replace_invalid_utf8(text.substr(0, kReasonBytesMax));
  if (kept.size() > kReasonBytesMax) kept.resize(kReasonBytesMax);
  kept.resize(kept.size() - incomplete_utf8_tail(kept));
  return kept;
}

}  // namespace lockstep

// Parts of sentences for people: bytes of memory, text cut to fit a message between nodes, and a
// check of text from others before it is shown.
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

// UTF-8 without control characters (C0, DEL and C1), which a terminal would obey.
inline bool is_plain_text(std::string_view text) {
  char before = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_c1 = before == '\xc2' && byte >= 0x80 && byte < 0xa0;
    if (byte < 0x20 || byte == 0x7f || is_c1) return false;
    before = c;
  }
  return is_valid_utf8(text);
}

}  // namespace lockstep

// UTF-8 to code points, for the front ends of grammars. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace lockstep {

// `text` is valid UTF-8.
inline std::vector<uint32_t> code_points(std::string_view text) {
  std::vector<uint32_t> points;
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    points.push_back(character.code_point);
    text.remove_prefix(character.bytes);
  }
  return points;
}

}  // namespace lockstep

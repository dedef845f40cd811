// Checks on texts.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace lockstep {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// They live as long as the text.
inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace lockstep

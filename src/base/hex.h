// Bytes as text: two lower-case hex digits each. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

std::string to_hex(std::span<const std::byte> bytes);

// Fills `bytes`; false if `text` is not exactly their hex digits, upper or lower case.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::byte> bytes);

// Only lower-case digits, and `digits` of them.
bool is_hex(std::string_view text, size_t digits);

}  // namespace lockstep

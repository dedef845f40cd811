// Bytes as text, two lower-case hex digits each, and back. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace lockstep {

// The value of a digit, upper or lower case; -1: not a digit.
int hex_digit(char digit);

std::string to_hex(std::span<const std::byte> bytes);

// Fills `bytes`; false if `text` is not exactly their hex digits, upper or lower case.
[[nodiscard]] bool from_hex(std::string_view text, std::span<std::byte> bytes);

// Only lower-case digits, exactly `digits` of them.
bool is_hex(std::string_view text, size_t digits);

// The hex digits of a hash; SHA-1 also names Git commits.
inline constexpr size_t kSha1Digits = 40;
inline constexpr size_t kSha256Digits = 64;

}  // namespace lockstep

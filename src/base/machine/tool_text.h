// Reading the texts that system tools print (base/machine/program_output.h): lines, words, numbers.
// Views stay valid as long as the text. Any bytes are accepted. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr size_t kToolLinesMax = 16'384;  // the rest of a longer text is not read

// Without line ends.
std::vector<std::string_view> tool_lines(std::string_view text);
// Without surrounding spaces, tabs and line ends.
std::string_view trimmed(std::string_view text);
// Separated by spaces and tabs.
std::vector<std::string_view> tool_words(std::string_view line);
// The whole number with which the text begins; nullopt without one, and beyond 64 bits.
std::optional<uint64_t> leading_number(std::string_view text);
// The same with a fraction: "1010.09ms" is 1010.09. No sign, no exponent.
std::optional<double> leading_decimal(std::string_view text);
// The trimmed rest of the line after `key`, if the line without its indentation begins with it.
std::optional<std::string_view> after_key(std::string_view line, std::string_view key);

}  // namespace lockstep

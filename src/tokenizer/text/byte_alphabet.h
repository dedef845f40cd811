// GPT-2's alphabet, in which byte-level vocabularies write bytes as printable characters: "\u0120"
// is a space. https://github.com/openai/gpt-2/blob/master/src/encoder.py
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Nullopt if a character is not in the alphabet.
std::optional<std::string> bytes_of_alphabet(std::string_view text);
std::string alphabet_of_bytes(std::string_view bytes);

}  // namespace lockstep

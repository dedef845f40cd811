#include "tokenizer/text/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace lockstep {
namespace {

constexpr uint32_t kShifted = 0x100;  // unprintable bytes are mapped from here on, in order
constexpr uint32_t kCharactersEnd = kShifted + 68;
constexpr int16_t kNoByte = -1;

constexpr bool is_printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> characters = {};
  std::array<int16_t, kCharactersEnd> bytes = {};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int16_t& byte : alphabet.bytes) byte = kNoByte;
  uint32_t shifted = kShifted;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t character = is_printable(byte) ? byte : shifted++;
    alphabet.characters[byte] = static_cast<uint16_t>(character);
    alphabet.bytes[character] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> bytes_of_alphabet(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    const bool is_known = character.state == Utf8State::kValid &&
                          character.code_point < kCharactersEnd &&
                          kAlphabet.bytes[character.code_point] != kNoByte;
    if (!is_known) return std::nullopt;
    bytes += static_cast<char>(kAlphabet.bytes[character.code_point]);
    text.remove_prefix(character.bytes);
  }
  return bytes;
}

std::string alphabet_of_bytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    const uint32_t character = kAlphabet.characters[static_cast<uint8_t>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | character >> 6);
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  return text;
}

}  // namespace lockstep

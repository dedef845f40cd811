#include "base/utf8.h"

#include <algorithm>

#include "base/check.h"

namespace lockstep {
namespace {

constexpr size_t kCharacterBytesMax = 4;

uint8_t byte_at(std::string_view text, size_t index) {
  return static_cast<uint8_t>(text[index]);
}

// The sequences a lead byte allows: table 3-7 of the Unicode standard. Length 0: not a lead byte.
struct Lead {
  size_t bytes;
  uint8_t second_min;
  uint8_t second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // lower values are overlong forms
  if (byte == 0xED) return {3, 0x80, 0x9F};  // higher values are surrogates
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // U+10FFFF is the last
  return {0, 0, 0};
}

size_t ascii_prefix(std::string_view text) {
  const auto* end = std::find_if(text.data(), text.data() + text.size(),
                                 [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
  return static_cast<size_t>(end - text.data());
}

}  // namespace

Utf8Character first_utf8_character(std::string_view text) {
  LOCKSTEP_CHECK(!text.empty());
  const uint8_t first = byte_at(text, 0);
  const Lead lead = lead_of(first);
  if (lead.bytes == 0) return {Utf8State::kInvalid, 1, 0};
  if (lead.bytes == 1) return {Utf8State::kValid, 1, first};
  uint32_t code_point = first & (0xFFu >> (lead.bytes + 1));
  for (size_t i = 1; i < lead.bytes; ++i) {
    if (i == text.size()) return {Utf8State::kIncomplete, i, 0};
    const uint8_t byte = byte_at(text, i);
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {Utf8State::kInvalid, i, 0};
    code_point = code_point << 6 | (byte & 0x3Fu);
  }
  return {Utf8State::kValid, lead.bytes, code_point};
}

bool is_valid_utf8(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const Utf8Character character = first_utf8_character(text);
    if (character.state != Utf8State::kValid) return false;
    text.remove_prefix(character.bytes);
  }
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    const size_t plain = ascii_prefix(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const Utf8Character character = first_utf8_character(text);
    const bool is_valid = character.state == Utf8State::kValid;
    out += is_valid ? text.substr(0, character.bytes) : kReplacementCharacter;
    text.remove_prefix(character.bytes);
  }
}

size_t incomplete_utf8_tail(std::string_view text) {
  const size_t bytes_max = std::min(text.size(), kCharacterBytesMax - 1);
  for (size_t bytes = 1; bytes <= bytes_max; ++bytes) {
    const std::string_view tail = text.substr(text.size() - bytes);
    const bool is_continuation = (byte_at(tail, 0) & 0xC0) == 0x80;
    if (is_continuation) continue;
    const Utf8Character character = first_utf8_character(tail);
    const bool reaches_end = character.bytes == bytes;
    return character.state == Utf8State::kIncomplete && reaches_end ? bytes : 0;
  }
  return 0;
}

void append_code_point(std::string& text, uint32_t code_point) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0 | code_point >> 6);
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0 | code_point >> 12);
    text += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  } else {
    text += static_cast<char>(0xF0 | code_point >> 18);
    text += static_cast<char>(0x80 | (code_point >> 12 & 0x3F));
    text += static_cast<char>(0x80 | (code_point >> 6 & 0x3F));
    text += static_cast<char>(0x80 | (code_point & 0x3F));
  }
}

}  // namespace lockstep

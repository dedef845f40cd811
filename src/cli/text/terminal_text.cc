#include "cli/text/terminal_text.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "base/letters.h"
#include "base/utf8.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

struct CodeRange {
  uint32_t first;
  uint32_t last;
};

// Sorted. Marks that stand on the character before them, and characters without a width.
constexpr CodeRange kZeroWidth[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x0900, 0x0902}, {0x093c, 0x093c}, {0x0941, 0x0948}, {0x094d, 0x094d}, {0x0e31, 0x0e31},
    {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200d},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0x1f3fb, 0x1f3ff},
};
constexpr CodeRange kWide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},
    {0x26a1, 0x26a1},   {0x2705, 0x2705},   {0x2728, 0x2728},   {0x274c, 0x274c},
    {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2b50, 0x2b50},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},
    {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
    {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

template <size_t kCount>
bool is_in(const CodeRange (&ranges)[kCount], uint32_t code) {
  const auto range = std::upper_bound(std::begin(ranges), std::end(ranges), code,
                                      [](uint32_t c, const CodeRange& r) { return c < r.first; });
  return range != std::begin(ranges) && code <= std::prev(range)->last;
}

// Directional marks, embeddings, overrides and isolates; tags, which are invisible; separators.
bool is_deceptive(uint32_t code) {
  return code == 0x061c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069) || (code >= 0xe0000 && code <= 0xe007f);
}

bool is_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f);
}

void append_harmless(std::string& out, uint32_t code, std::string_view bytes) {
  constexpr uint32_t kPictures = 0x2400, kPictureOfDelete = 0x2421;
  if (code < 0x20 && code != '\n' && code != '\t') return append_code_point(out, kPictures + code);
  if (code == 0x7f) return append_code_point(out, kPictureOfDelete);
  if (is_deceptive(code) || (is_control(code) && code >= 0x80)) {
    out += kReplacementCharacter;
  } else {
    out += bytes;
  }
}

size_t columns_of_code(uint32_t code) {
  if (is_control(code) || is_in(kZeroWidth, code)) return 0;
  return is_in(kWide, code) ? 2 : 1;
}

size_t columns_of_character(const Utf8Character& character) {
  return character.state == Utf8State::kValid ? columns_of_code(character.code_point) : 1;
}

bool names_utf8(const char* locale) {
  const std::string text = lower_text(locale);
  return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
}

bool is_set(const char* value) {
  return value != nullptr && *value != '\0';
}

bool is_on(const char* value) {
  return is_set(value) && std::string_view(value) != "0";
}

const char* own_variable(const char* name) {
  return std::getenv(name);
}

}  // namespace

TerminalManner terminal_manner(bool is_terminal, const EnvironmentLookup& variable) {
  TerminalManner manner;
  const char* term = variable("TERM");
  const bool is_dumb = !is_set(term) || std::string_view(term) == "dumb";
  manner.is_terminal = is_terminal;
  manner.may_repaint = is_terminal && !is_dumb && !is_on(variable("ACCESSIBLE"));
  manner.has_colour = (is_terminal && !is_dumb) || is_on(variable("CLICOLOR_FORCE"));
  if (is_set(variable("NO_COLOR"))) manner.has_colour = false;
  // The first that is set decides, as in POSIX's locales.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = variable(name);
    if (!is_set(value)) continue;
    manner.has_utf8 = names_utf8(value);
    break;
  }
  return manner;
}

TerminalManner stdout_manner() {
  return terminal_manner(stdout_is_terminal(), own_variable);
}

TerminalManner stderr_manner() {
  return terminal_manner(stderr_is_terminal(), own_variable);
}

std::string styled(const TerminalManner& manner, TextStyle style, std::string_view text) {
  if (!manner.has_colour || text.empty()) return std::string(text);
  const char* code = style == TextStyle::kDim ? "2" : style == TextStyle::kBold ? "1" : "7";
  std::string out = "\x1b[";
  out += code;
  out += 'm';
  out += text;
  out += "\x1b[0m";
  return out;
}

std::string harmless_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    if (text.starts_with("\r\n")) {
      out += '\n';
      text.remove_prefix(2);
      continue;
    }
    if (character.state == Utf8State::kValid) {
      append_harmless(out, character.code_point, text.substr(0, character.bytes));
    } else {
      out += kReplacementCharacter;
    }
    text.remove_prefix(std::max<size_t>(character.bytes, 1));
  }
  return out;
}

std::string harmless_line(std::string_view text) {
  std::string line = harmless_text(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  std::replace(line.begin(), line.end(), '\t', ' ');
  return line;
}

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    columns += columns_of_character(character);
    text.remove_prefix(std::max<size_t>(character.bytes, 1));
  }
  return columns;
}

std::string_view first_columns(std::string_view text, size_t columns) {
  size_t bytes = 0, used = 0;
  while (bytes < text.size()) {
    const Utf8Character character = first_utf8_character(text.substr(bytes));
    used += columns_of_character(character);
    if (used > columns) break;
    bytes += std::max<size_t>(character.bytes, 1);
  }
  return text.substr(0, bytes);
}

std::string fit_columns(std::string_view text, size_t columns, bool has_utf8) {
  const size_t whole = columns_of(text);
  if (whole <= columns) return std::string(text) + std::string(columns - whole, ' ');
  if (columns == 0) return "";
  const std::string_view shown = first_columns(text, columns - 1);
  return std::string(shown) + (has_utf8 ? "…" : "~") +
         std::string(columns - 1 - columns_of(shown), ' ');
}

}  // namespace lockstep

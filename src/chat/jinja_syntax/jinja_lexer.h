// Splits a chat template into tokens the way Jinja does with trim_blocks and lstrip_blocks on and
// keep_trailing_newline off. Only for the parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep::jinja {

enum class TokenKind : uint8_t {
  kText,  // outside of tags, white space control applied
  kPrintBegin,
  kPrintEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,  // escapes resolved
  kInt,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind;
  uint32_t line;
  std::string text;
};

inline constexpr size_t kTemplateBytesMax = size_t{4} << 20;

// The last token is kEnd. kCorrupt with the line of a syntax error.
Result<std::vector<Token>> lex_template(std::string_view source);

Error template_syntax_error(uint32_t line, std::string_view what);

}  // namespace lockstep::jinja

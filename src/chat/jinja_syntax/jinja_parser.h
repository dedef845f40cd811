// Parses a chat template to a Program: the statements and expressions that published chat
// templates use. Not supported: inheritance, imports, call blocks, with, recursive loops.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "chat/jinja_syntax/jinja_ast.h"

namespace lockstep::jinja {

// kCorrupt with the line and the expected token.
Result<std::unique_ptr<const Program>> parse_template(std::string_view source);

}  // namespace lockstep::jinja

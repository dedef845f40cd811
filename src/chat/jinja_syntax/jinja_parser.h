// Parses a chat template to a JinjaProgram: the statements and expressions that published chat
// templates use. Not supported: inheritance, imports, call blocks, with, recursive loops.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"
#include "chat/jinja_syntax/jinja_ast.h"

namespace lockstep {

// kCorrupt with the line and the expected token.
Result<std::unique_ptr<const JinjaProgram>> parse_template(std::string_view source);

}  // namespace lockstep

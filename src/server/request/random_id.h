// An id for an answer, message or request: a prefix and 24 random letters and digits. Any thread.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

std::string random_id(std::string_view prefix);

}  // namespace lockstep

// The manual page lockstep(1), in the macros of man(7): the commands and their flags from the tree,
// files and environment from here. Pure.
#pragma once

#include <string>

#include "cli/text/command_tree.h"

namespace lockstep {

std::string manual_page(const CommandText& program);

}  // namespace lockstep

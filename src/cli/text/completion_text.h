// Completions for shells, made of the tree of commands, so that none is forgotten. Each shell's
// manual defines its form: bash(1) "Programmable Completion", zshcompsys(1), and complete(1) of
// fish. Pure.
#pragma once

#include <string>

#include "cli/text/command_tree.h"

namespace lockstep {

std::string bash_completion(const CommandText& program);
std::string zsh_completion(const CommandText& program);
std::string fish_completion(const CommandText& program);

}  // namespace lockstep

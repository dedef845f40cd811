// The part of this process's environment that the programs it starts inherit: variables that a
// worker or a system tool needs, by name. Tokens, API keys, proxies with passwords and other
// settings of the owner are not passed on: a process's variables are readable in /proc and in its
// core dump. Used by base/process/child_process.h. Any thread, while none changes the environment.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

// `name` is a variable without its value.
bool reaches_children(std::string_view name);
// For posix_spawn: pointers into this process's own environment, terminated by null.
std::vector<char*> child_environment();

}  // namespace lockstep

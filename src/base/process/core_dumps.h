// Core dumps contain a process's data: keys, tokens, prompts, answers. A process that forbids them
// leaves none and, under Linux, lets no other process of its user read its memory (ptrace,
// /proc/PID/mem, /proc/PID/environ); gdb and perf then need root. Serving commands and their
// workers (node/worker/worker_flags.h) do so at their start. It cannot be undone. Called before
// threads exist.
#pragma once

namespace lockstep {

void forbid_core_dumps();
// Raises the limit as far as this process is allowed.
void allow_core_dumps();
// Whether this process has called forbid_core_dumps(). Any thread.
bool are_core_dumps_forbidden();

}  // namespace lockstep

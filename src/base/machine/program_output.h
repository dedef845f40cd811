// run_program: the output of a program on this machine, for callers of system tools (a firewall's
// rules, the journal). Blocks until it ends or the deadline passes, and then kills it. Any thread.
// Workers are started by base/process/child_process.h instead.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct ProgramRun {
  std::string program;                 // searched in PATH and in the administrator's folders
  std::vector<std::string> arguments;  // without the program's own name
  std::chrono::milliseconds timeout{3'000};
  size_t output_bytes_max = size_t{1} << 20;  // the rest is cut off
};

struct ProgramAnswer {
  int status = 0;      // its exit status; 128 and the signal's number if it was killed
  std::string output;  // its stdout; stderr is discarded
};

// kNotFound: no such program; kTimeout: it did not end in time.
Result<ProgramAnswer> run_program(const ProgramRun& run);

}  // namespace lockstep

// run_program: what a program of this machine prints, for those who ask the system's own tools (a
// firewall's rules, the journal). Blocks until it ends or the deadline is there, and kills it then.
// Any thread. Workers are started by base/child_process.h instead.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct ProgramRun {
  std::string program;                 // looked for in PATH and in the administrator's folders
  std::vector<std::string> arguments;  // without the program's own name
  std::chrono::milliseconds timeout{3'000};
  size_t output_bytes_max = size_t{1} << 20;  // what lies beyond is cut off
};

struct ProgramAnswer {
  int status = 0;      // its exit status; 128 and the signal's number if it was killed
  std::string output;  // its stdout; stderr is thrown away
};

// kNotFound: there is no such program; kTimeout: it did not end in time.
Result<ProgramAnswer> run_program(const ProgramRun& run);

}  // namespace lockstep

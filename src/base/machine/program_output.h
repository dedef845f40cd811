// run_program: the output of a program on this machine, for callers of system tools (a firewall's
// rules, the journal). Blocks until it ends or the deadline passes, and then kills it. Any thread.
// ProgramStream: the output of one that prints until it is ended (a power meter's samples); one
// thread uses it. Workers are started by base/process/child_process.h instead.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/files/unique_fd.h"
#include "base/process/child_process.h"
#include "base/result.h"

namespace lockstep {

struct ProgramRun {
  std::string program;                 // searched in PATH and in the administrator's folders
  std::vector<std::string> arguments;  // without the program's own name
  std::chrono::milliseconds timeout{3'000};
  size_t output_bytes_max = size_t{1} << 20;  // the rest is cut off
  bool with_errors = false;                   // its stderr goes where its stdout goes
};

struct ProgramAnswer {
  int status = 0;      // its exit status; kKilledStatus + the signal's number if it was killed
  std::string output;  // its stdout; stderr is discarded but for with_errors

  static constexpr int kKilledStatus = 128;
  // That ended it; 0: none did.
  int signal() const { return status > kKilledStatus ? status - kKilledStatus : 0; }
};

// kNotFound: no such program; kTimeout: it did not end in time.
Result<ProgramAnswer> run_program(const ProgramRun& run);

class ProgramStream {
 public:
  static constexpr size_t kReadBytesMax = size_t{1} << 20;  // of one read()

  // A program that does not exist ends at once, which read() shows.
  static Result<ProgramStream> start(const std::string& program,
                                     std::vector<std::string> arguments);

  // Everything that it has printed since the last call; never waits. A program that is not read is
  // held up once the pipe is full (64 KiB). Nullopt: it has ended, and everything is read.
  std::optional<std::string> read();

 private:
  ProgramStream(UniqueFd output, ChildProcess child)
      : output_(std::move(output)), child_(std::move(child)) {}

  UniqueFd output_;
  ChildProcess child_;  // killed with the object
};

}  // namespace lockstep

// ChildProcess: one program that this process started, with its end observed and reaped. Used by
// the node for its workers. Only the descriptors in `inherited` and the variables of
// base/process/child_environment.h reach the child. One thread uses an object; under Linux the
// child may ask to die with the thread that called start() (PR_SET_PDEATHSIG), so that thread must
// outlive the child.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct ChildExit {
  bool signalled = false;
  int value = 0;  // the exit status, or the signal that ended it
};

// "was killed by signal 9 (SIGKILL)" or "exited with status 1".
std::string describe(ChildExit exit);

class ChildProcess {
 public:
  // The child's descriptors 3, 4, 5... are duplicates of `inherited`; 0, 1 and 2 are ours.
  static constexpr int kFirstInheritedFd = 3;

  struct Options {
    std::string program;                 // a path; PATH is not searched
    std::vector<std::string> arguments;  // without the program's own name
    std::vector<int> inherited;
  };

  static Result<ChildProcess> start(const Options& options);

  ChildProcess(ChildProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), exit_(std::exchange(other.exit_, std::nullopt)) {}
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();  // kills and reaps

  pid_t pid() const { return pid_; }
  // Set once the child has ended (it is reaped now at the latest).
  std::optional<ChildExit> poll_exit();
  // SIGKILL, which also ends a stopped process; no-op if it has ended.
  void kill_now();
  // Reaps the child if it ends within `limit`.
  std::optional<ChildExit> wait_exit(std::chrono::milliseconds limit);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;
  std::optional<ChildExit> exit_;
};

// A path for ChildProcess that starts more of the running program, even if its file was replaced.
Result<std::string> own_program();
// The program's file, which any process can start. kNotFound if it was replaced or removed.
Result<std::string> own_program_file();

}  // namespace lockstep

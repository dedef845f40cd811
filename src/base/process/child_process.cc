#include "base/process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>

#include "base/files/unique_fd.h"
#include "base/log.h"
#include "base/process/child_environment.h"

#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
#define LOCKSTEP_HAS_CLOSEFROM
#endif
#endif

namespace lockstep {
namespace {

// Above every number that a child inherits, so that no dup2 overwrites a source that is still
// needed.
constexpr int kSourceFdMin = 64;
constexpr std::chrono::seconds kKilledWaitMax{5};

const char* signal_name(int signal) {
  switch (signal) {
    case SIGABRT:
      return "SIGABRT";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGHUP:
      return "SIGHUP";
    case SIGILL:
      return "SIGILL";
    case SIGINT:
      return "SIGINT";
    case SIGKILL:
      return "SIGKILL";
    case SIGPIPE:
      return "SIGPIPE";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGTERM:
      return "SIGTERM";
    default:
      return strsignal(signal);
  }
}

// posix_spawn's two objects, destroyed together.
struct SpawnSetup {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSetup() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;
};

// No blocked or ignored signals, and a separate process group: Ctrl-C in a terminal is for us, and
// we end our children.
void set_attributes(posix_spawnattr_t* attributes) {
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(attributes, &none);
  posix_spawnattr_setsigdefault(attributes, &defaults);
  posix_spawnattr_setpgroup(attributes, 0);
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP;
#ifdef __APPLE__
  flags |= POSIX_SPAWN_CLOEXEC_DEFAULT;
#endif
  posix_spawnattr_setflags(attributes, flags);
}

Result<std::vector<UniqueFd>> duplicate_above(const std::vector<int>& fds) {
  std::vector<UniqueFd> sources;
  for (int fd : fds) {
    sources.emplace_back(fcntl(fd, F_DUPFD_CLOEXEC, kSourceFdMin + static_cast<int>(fds.size())));
    if (!sources.back().is_open()) {
      return Error{ErrorCode::kInternal,
                   fmt::format("cannot hand descriptor {} to a child: {}", fd, strerror(errno))};
    }
  }
  return sources;
}

}  // namespace

std::string describe(ChildExit exit) {
  return exit.signalled
             ? fmt::format("was killed by signal {} ({})", exit.value, signal_name(exit.value))
             : fmt::format("exited with status {}", exit.value);
}

Result<ChildProcess> ChildProcess::start(const Options& options) {
  const std::vector<UniqueFd> sources = TRY(duplicate_above(options.inherited));
  SpawnSetup setup;
  set_attributes(&setup.attributes);
  int target = kFirstInheritedFd;
  for (const UniqueFd& source : sources) {
    posix_spawn_file_actions_adddup2(&setup.actions, source.get(), target++);
  }
#ifdef __APPLE__
  for (int fd : {0, 1, 2}) posix_spawn_file_actions_addinherit_np(&setup.actions, fd);
#endif
#ifdef LOCKSTEP_HAS_CLOSEFROM
  // Ours are O_CLOEXEC, but a library's may not be: if a child kept a connection open, the other
  // end would not see that we have closed it.
  posix_spawn_file_actions_addclosefrom_np(&setup.actions, target);
#endif
  std::vector<char*> argv{const_cast<char*>(options.program.c_str())};
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> variables = child_environment();
  pid_t pid = -1;
  const int error = posix_spawn(&pid, options.program.c_str(), &setup.actions, &setup.attributes,
                                argv.data(), variables.data());
  if (error != 0) {
    return Error{error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInternal,
                 fmt::format("cannot start the program {}: {}", options.program, strerror(error))};
  }
  return ChildProcess(pid);
}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exit_) return;
  kill_now();
  if (!wait_exit(kKilledWaitMax)) log_error("process {} does not end after SIGKILL", pid_);
}

std::optional<ChildExit> ChildProcess::poll_exit() {
  if (exit_ || pid_ < 0) return exit_;
  int status = 0;
  const pid_t got = waitpid(pid_, &status, WNOHANG);
  if (got == pid_) {
    exit_ = WIFSIGNALED(status) ? ChildExit{true, WTERMSIG(status)}
                                : ChildExit{false, WEXITSTATUS(status)};
  } else if (got < 0 && errno == ECHILD) {
    exit_ = ChildExit{false, -1};  // reaped elsewhere: how it ended is unknown
  }
  return exit_;
}

void ChildProcess::kill_now() {
  if (pid_ > 0 && !exit_) ::kill(pid_, SIGKILL);
}

std::optional<ChildExit> ChildProcess::wait_exit(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!poll_exit() && std::chrono::steady_clock::now() < deadline) {
    ::poll(nullptr, 0, 1);  // waitpid has no deadline of its own
  }
  return exit_;
}

Result<std::string> own_program() {
#ifdef __APPLE__
  char path[PATH_MAX];
  uint32_t size = sizeof(path);
  if (_NSGetExecutablePath(path, &size) == 0) return std::string(path);
  return Error{ErrorCode::kInternal, "cannot find the path of this program"};
#else
  return std::string("/proc/self/exe");
#endif
}

Result<std::string> own_program_file() {
  std::error_code failed;
  const auto file = std::filesystem::canonical(TRY(own_program()), failed);
  if (!failed) return file.string();
  return Error{ErrorCode::kNotFound,
               "the file of this program is no longer there; start the installed one"};
}

}  // namespace lockstep

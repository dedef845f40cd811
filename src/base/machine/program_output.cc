#include "base/machine/program_output.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// A shell finds the program, passes it our pipe as its stdout and becomes it.
constexpr const char* kShell = "/bin/sh";
constexpr const char* kScript =
    "PATH=\"$PATH:/usr/sbin:/sbin:/usr/bin:/bin\"; exec \"$@\" >&3 3>&- 2>/dev/null </dev/null";
constexpr const char* kScriptWithErrors =
    "PATH=\"$PATH:/usr/sbin:/sbin:/usr/bin:/bin\"; exec \"$@\" >&3 2>&3 3>&- </dev/null";
constexpr int kNotFoundStatus = 127;  // a shell's status for it
// A program that has closed its stdout is about to end.
constexpr std::chrono::milliseconds kEndWait{1'000};

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> open_output_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    return Error{ErrorCode::kInternal, fmt::format("no pipe: {}", std::strerror(errno))};
  }
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  for (const int end : ends) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  return pipe;
}

// Reads until the writer closes it. False at the deadline.
bool read_all(int fd, Clock::time_point deadline, size_t bytes_max, std::string& output) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) continue;
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    const size_t room = bytes_max - std::min(bytes_max, output.size());
    output.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
  }
}

Result<ChildProcess> start_in_shell(const char* script, const std::string& program,
                                    const std::vector<std::string>& its_arguments, int output) {
  std::vector<std::string> arguments{"-c", script, "sh", program};
  arguments.insert(arguments.end(), its_arguments.begin(), its_arguments.end());
  return ChildProcess::start(
      {.program = kShell, .arguments = std::move(arguments), .inherited = {output}});
}

}  // namespace

Result<ProgramAnswer> run_program(const ProgramRun& run) {
  const Clock::time_point deadline = Clock::now() + run.timeout;
  Pipe pipe = TRY(open_output_pipe());
  ChildProcess child = TRY(start_in_shell(run.with_errors ? kScriptWithErrors : kScript,
                                          run.program, run.arguments, pipe.write.get()));
  pipe.write.reset();
  ProgramAnswer answer;
  const bool is_closed = read_all(pipe.read.get(), deadline, run.output_bytes_max, answer.output);
  const auto end = is_closed ? child.wait_exit(kEndWait) : std::nullopt;
  if (!end) {
    return Error{ErrorCode::kTimeout, fmt::format("the program {} did not end within {} ms",
                                                  run.program, run.timeout.count())};
  }
  if (!end->signalled && end->value == kNotFoundStatus) {
    return Error{ErrorCode::kNotFound, fmt::format("the program {} does not exist", run.program)};
  }
  answer.status = end->signalled ? ProgramAnswer::kKilledStatus + end->value : end->value;
  return answer;
}

Result<ProgramStream> ProgramStream::start(const std::string& program,
                                           std::vector<std::string> arguments) {
  Pipe pipe = TRY(open_output_pipe());
  ::fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  ChildProcess child = TRY(start_in_shell(kScript, program, arguments, pipe.write.get()));
  return ProgramStream(std::move(pipe.read), std::move(child));
}

std::optional<std::string> ProgramStream::read() {
  std::string output;
  std::array<char, 4096> buffer{};
  while (output.size() < kReadBytesMax) {
    const ssize_t count = ::read(output_.get(), buffer.data(), buffer.size());
    if (count > 0) {
      output.append(buffer.data(), static_cast<size_t>(count));
    } else if (count == 0) {
      return output.empty() ? std::nullopt : std::optional(std::move(output));
    } else if (errno != EINTR) {
      break;  // EAGAIN: no more now
    }
  }
  return output;
}

}  // namespace lockstep

#include "base/threads/wake_pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace lockstep {
namespace {

bool open_pipe(int fds[2]) {
#ifdef __linux__
  return ::pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0;
#else
  if (::pipe(fds) != 0) return false;
  for (int i = 0; i < 2; ++i) {
    fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    fcntl(fds[i], F_SETFL, O_NONBLOCK);
  }
  return true;
#endif
}

}  // namespace

Result<WakePipe> WakePipe::create() {
  int fds[2] = {-1, -1};
  if (!open_pipe(fds)) {
    return Error{ErrorCode::kInternal, std::string("cannot make a pipe: ") + strerror(errno)};
  }
  WakePipe pipe;
  pipe.read_end_.reset(fds[0]);
  pipe.write_end_.reset(fds[1]);
  return pipe;
}

void WakePipe::wake() const {
  // A full pipe also wakes.
  [[maybe_unused]] const ssize_t written = ::write(write_end_.get(), "", 1);
}

void WakePipe::drain() const {
  char bytes[256];
  while (::read(read_end_.get(), bytes, sizeof(bytes)) > 0) {
  }
}

}  // namespace lockstep

#include "base/process/parent_watch.h"

#ifdef __linux__
#include <sys/prctl.h>

#include <csignal>
#elif defined(__APPLE__)
#include <sys/event.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "base/files/unique_fd.h"
#endif

namespace lockstep {

#ifdef __linux__

void die_with_parent() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

#elif defined(__APPLE__)

namespace {

// The new parent of an orphan is another process (launchd), which is seen at the latest after the
// wait, also if the parent ended before the kqueue knew it. man 2 kqueue.
void watch_parent(pid_t parent) {
  const UniqueFd queue(::kqueue());
  struct kevent watch {};
  EV_SET(&watch, parent, EVFILT_PROC, EV_ADD, NOTE_EXIT, 0, nullptr);
  if (!queue.is_open()) return;
  // Without a watch, because the parent is gone or hidden, the wait alone looks at it.
  (void)::kevent(queue.get(), &watch, 1, nullptr, 0, nullptr);
  while (::getppid() == parent) {
    struct kevent event {};
    const timespec wait{.tv_sec = 1, .tv_nsec = 0};
    if (::kevent(queue.get(), nullptr, 0, &event, 1, &wait) < 0 && errno != EINTR) return;
  }
  ::kill(::getpid(), SIGKILL);
}

}  // namespace

void die_with_parent() {
  std::thread(watch_parent, ::getppid()).detach();
}

#else

void die_with_parent() {}

#endif

}  // namespace lockstep

#include "base/process/core_dumps.h"

#include <sys/resource.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <atomic>

namespace lockstep {
namespace {

std::atomic<bool> is_forbidden{false};  // set before threads exist, so no order is needed

}  // namespace

void forbid_core_dumps() {
  const rlimit none{.rlim_cur = 0, .rlim_max = 0};
  ::setrlimit(RLIMIT_CORE, &none);  // lowering is always permitted
#ifdef __linux__
  // The limit has no effect if the kernel pipes cores to a program (core_pattern); this does.
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
  is_forbidden.store(true, std::memory_order_relaxed);
}

void allow_core_dumps() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_CORE, &limit);
}

bool are_core_dumps_forbidden() {
  return is_forbidden.load(std::memory_order_relaxed);
}

}  // namespace lockstep

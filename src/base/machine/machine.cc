#include "base/machine/machine.h"

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#include <unistd.h>
#endif

#include "base/machine/mac_system.h"

namespace lockstep {
namespace {

#ifdef __linux__

// One flag per processor. Linux counts processors up to CPU_SETSIZE in a fixed-size set; any beyond
// are not used for pinning.
std::vector<bool> read_allowed_cores() {
  std::vector<bool> allowed(CPU_SETSIZE, false);
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return allowed;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    allowed[static_cast<size_t>(core)] = CPU_ISSET(core, &set);
  }
  return allowed;
}

const std::vector<bool>& allowed_cores() {
  static const std::vector<bool> allowed = read_allowed_cores();
  return allowed;
}

// A container's limit of processor time, rounded up to whole processors (cgroup v2, cpu.max: "quota
// period" in microseconds, or "max period"); `otherwise` if there is none.
int quota_cores(int otherwise) {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) return otherwise;
  long quota = 0;
  long period = 0;
  const int fields = std::fscanf(file, "%ld %ld", &quota, &period);
  std::fclose(file);
  if (fields != 2 || quota <= 0 || period <= 0) return otherwise;
  return static_cast<int>(std::min<long>((quota + period - 1) / period, otherwise));
}

#endif

}  // namespace

int machine_core_count() {
#ifdef __linux__
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) return static_cast<int>(online);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int available_core_count() {
#ifdef __linux__
  const std::vector<bool>& allowed = allowed_cores();
  const int count = static_cast<int>(std::count(allowed.begin(), allowed.end(), true));
  if (count > 0) return std::max(1, quota_cores(count));
#endif
  // Read once, as the mask: the figures do not change.
  static const int computing = kIsMac ? mac_computing_cores(mac_core_kinds()) : 0;
  const int all = machine_core_count();
  return computing > 0 ? std::min(computing, all) : all;
}

bool is_core_allowed([[maybe_unused]] int core) {
#ifdef __linux__
  return core >= 0 && core < CPU_SETSIZE && allowed_cores()[static_cast<size_t>(core)];
#else
  return false;
#endif
}

bool pin_this_thread([[maybe_unused]] int core) {
#ifdef __linux__
  if (!is_core_allowed(core)) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
#else
  return false;  // macOS cannot bind threads to processors
#endif
}

}  // namespace lockstep

// A file's modification time, as precise as the system has it. Any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace lockstep {

inline int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

inline int64_t changed_ns(const struct stat& facts) {
#ifdef __APPLE__
  return nanoseconds(facts.st_mtimespec);
#else
  return nanoseconds(facts.st_mtim);
#endif
}

}  // namespace lockstep

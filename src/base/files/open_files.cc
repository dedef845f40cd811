#include "base/files/open_files.h"

#include <sys/resource.h>

#include <algorithm>

namespace lockstep {
namespace {

#ifdef __APPLE__
constexpr rlim_t kNeededMax = 10'240;  // macOS refuses more (OPEN_MAX)
#else
constexpr rlim_t kNeededMax = 65'536;
#endif

}  // namespace

uint64_t raise_open_files_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t wanted = std::min(limit.rlim_max, kNeededMax);
  if (wanted <= limit.rlim_cur) return limit.rlim_cur;
  rlimit raised = limit;
  raised.rlim_cur = wanted;
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace lockstep

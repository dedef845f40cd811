#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace lockstep {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "lockstep: internal error at %s:%d: %s does not hold\n", file, line,
               condition);
  std::abort();
}

}  // namespace lockstep

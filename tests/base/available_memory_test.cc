#include "base/machine/available_memory.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

TEST_CASE("the system reports a plausible amount of available memory") {
  const auto bytes = available_memory_bytes();
#if defined(__linux__) || defined(__APPLE__)
  REQUIRE(bytes.has_value());
  CHECK(*bytes > uint64_t{1} << 20);
  CHECK(*bytes < uint64_t{1} << 50);
#else
  CHECK_FALSE(bytes.has_value());
#endif
}

}  // namespace
}  // namespace lockstep

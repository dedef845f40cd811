#include "base/threads/guarded.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <string>

using namespace lockstep;

TEST_CASE("a job that runs out of memory or throws anything fails with an error") {
  // Thrown here and not by an allocation, which a sanitizer would end the program for.
  const Status memory = guarded([] { throw std::bad_alloc(); });
  REQUIRE(!memory.ok());
  CHECK(memory.error().code == ErrorCode::kExhausted);
  CHECK(memory.error().message == "out of memory");
  const Status length = guarded([] { std::string().reserve(std::string().max_size() + 1); });
  REQUIRE(!length.ok());
  CHECK(length.error().code == ErrorCode::kInternal);
  const Status odd = guarded([] { throw 7; });
  REQUIRE(!odd.ok());
  CHECK(odd.error().message == "an exception");
}

TEST_CASE("a job's result is passed on, and so is its own error") {
  CHECK(guarded([] {}).ok());
  const Result<int> seven = guarded([]() -> Result<int> { return 7; });
  REQUIRE(seven.ok());
  CHECK(seven.value() == 7);
  const Status own = guarded([]() -> Status { return Error{ErrorCode::kTimeout, "late"}; });
  REQUIRE(!own.ok());
  CHECK(own.error().message == "late");
  const Result<int> thrown = guarded([]() -> Result<int> { throw std::runtime_error("broken"); });
  REQUIRE(!thrown.ok());
  CHECK(thrown.error().message == "broken");
}

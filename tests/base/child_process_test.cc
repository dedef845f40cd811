#include "base/process/child_process.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <string>

#include "base/files/unique_fd.h"

using namespace lockstep;
using namespace std::chrono_literals;

TEST_CASE("a child inherits the descriptors it was given, and none of a library's") {
  const UniqueFd forgotten(::open("/dev/null", O_RDONLY));  // without O_CLOEXEC
  const UniqueFd given(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(forgotten.is_open());
  const auto is_open_in_child = [&](int fd) {
    ChildProcess::Options options{.program = "/bin/sh", .arguments = {"-c"}};
    options.arguments.push_back("if true <&" + std::to_string(fd) + "; then exit 7; fi; exit 8");
    options.inherited = {given.get()};
    auto child = ChildProcess::start(options);
    REQUIRE(child.ok());
    const auto exit = child.value().wait_exit(20s);
    REQUIRE(exit.has_value());
    CHECK_FALSE(exit->signalled);
    return exit->value == 7;
  };
  CHECK(is_open_in_child(ChildProcess::kFirstInheritedFd));
  // A single digit: /bin/sh understands no longer ones in a redirection.
  const UniqueFd low(::fcntl(forgotten.get(), F_DUPFD, ChildProcess::kFirstInheritedFd + 1));
  REQUIRE(low.get() < 10);
  CHECK_FALSE(is_open_in_child(low.get()));
}

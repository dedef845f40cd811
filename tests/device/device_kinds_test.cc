#include "device/device_kinds.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

TEST_CASE("a list of devices gives each rank its own, and one is for all") {
  CHECK(device_kind_of("cpu", 7).value() == "cpu");
  CHECK(device_kind_of("cpu,slowed:1,delayed", 0).value() == "cpu");
  CHECK(device_kind_of("cpu,slowed:1,delayed", 1).value() == "slowed:1");
  CHECK(device_kind_of("cpu,slowed:1,delayed", 2).value() == "delayed");
  CHECK(!device_kind_of("cpu,slowed:1,delayed", 3).ok());
}

TEST_CASE("vulkan is the first GPU, and a number is another one") {
  CHECK(parse_vulkan("vulkan") == 0);
  CHECK(parse_vulkan("vulkan:0") == 0);
  CHECK(parse_vulkan("vulkan:12") == 12);
  for (const char* wrong : {"", "cpu", "vulkan:", "vulkan:-1", "vulkan:1x", "vulkan1", "Vulkan"}) {
    CHECK_MESSAGE(!parse_vulkan(wrong), wrong);
  }
}

TEST_CASE("kinds of devices are checked before there is a rank") {
  for (const char* right : {"auto", "cpu", "delayed", "slowed:10/5", "cpu,auto"}) {
    CHECK_MESSAGE(check_device_kinds(right, 2).ok(), right);
  }
  const Status unknown = check_device_kinds("cpu,vulcan", 2);
  REQUIRE(!unknown.ok());
  CHECK(unknown.error().code == ErrorCode::kInvalidArgument);
  CHECK(unknown.error().message ==
        "there is no device \"vulcan\"; use auto, cpu, vulkan or vulkan:N");
  CHECK(check_device_kinds("", 1).error().message.starts_with("there is no device \"\""));
  const Status few = check_device_kinds("cpu,cpu", 3);
  REQUIRE(!few.ok());
  CHECK(few.error().message == "\"cpu,cpu\" names 2 devices, which is too few for rank 2");
}

TEST_CASE("a GPU is a kind only of programs that are built with GPUs") {
#if defined(LOCKSTEP_HAS_GPU)
  CHECK(check_device_kinds("vulkan,vulkan:3", 2).ok());
#else
  CHECK(check_device_kind("vulkan").error().code == ErrorCode::kUnsupported);
#endif
}

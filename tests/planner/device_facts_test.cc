// The device of a node: its budget, its JSON, and its examination by a process of its own.
#include "planner/facts/device_facts.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

constexpr uint64_t kGibOfDevice = uint64_t{1} << 30;

DeviceFacts card() {
  return {.kind = "vulkan:1",
          .name = "Radeon (radv, Mesa 26.1.2)",
          .is_gpu = true,
          .has_own_memory = true,
          .memory_bytes = 24 * kGibOfDevice,
          .free_bytes = 16 * kGibOfDevice,
          .speed = {.read_gb_s = 700.5, .kernel_us = 4.5, .wait_us = 20, .operations_s = 2e12}};
}

DeviceFacts shared_gpu() {
  DeviceFacts facts = card();
  facts.has_own_memory = false;
  return facts;
}

std::string refused_budget(const DeviceFacts& facts, std::optional<uint64_t> machine,
                           uint64_t asked) {
  const auto budget = device_budget(facts, machine, asked);
  REQUIRE(!budget.ok());
  return budget.error().message;
}

// A program that takes the place of lockstep.
std::string script(const TemporaryFolder& folder, const std::string& lines) {
  const std::filesystem::path path = folder.write("program", "#!/bin/sh\n" + lines + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return path.string();
}

Result<DeviceFacts> examined(const std::string& lines) {
  const TemporaryFolder folder;
  return examine_device_apart({.program = script(folder, lines)}, "vulkan");
}

}  // namespace

TEST_CASE("the budget of a card is what is free there less a reserve, whatever the machine has") {
  CHECK(device_budget(card(), 4 * kGibOfDevice, 0).value() == 15 * kGibOfDevice);
  CHECK(device_budget(card(), std::nullopt, 0).value() == 15 * kGibOfDevice);
  DeviceFacts small = card();
  small.free_bytes = 4 * kGibOfDevice;
  CHECK(device_budget(small, std::nullopt, 0).value() == kGibOfDevice * 7 / 2);
  small.free_bytes = kGibOfDevice;
  CHECK(device_budget(small, std::nullopt, 0).value() == kGibOfDevice * 3 / 4);
}

TEST_CASE("the budget of a GPU in shared memory is the smaller of the machine's and its own") {
  CHECK(device_budget(shared_gpu(), 100 * kGibOfDevice, 0).value() == 24 * kGibOfDevice);
  CHECK(device_budget(shared_gpu(), 10 * kGibOfDevice, 0).value() == 10 * kGibOfDevice);
  const DeviceFacts processor{.kind = "cpu"};
  CHECK(device_budget(processor, 10 * kGibOfDevice, 0).value() == 10 * kGibOfDevice);
  CHECK(refused_budget(processor, std::nullopt, 0).find("--memory GIB") != std::string::npos);
}

TEST_CASE("memory that is asked for is taken, but never more than the GPU has") {
  CHECK(device_budget(card(), kGibOfDevice, 20 * kGibOfDevice).value() == 20 * kGibOfDevice);
  CHECK(device_budget(shared_gpu(), kGibOfDevice, 2 * kGibOfDevice).value() == 2 * kGibOfDevice);
  CHECK(refused_budget(card(), kGibOfDevice, 200 * kGibOfDevice) ==
        "--memory asks for 200.00 GiB, but Radeon (radv, Mesa 26.1.2) has 24.00 GiB");
  const DeviceFacts processor{.kind = "cpu"};
  CHECK(device_budget(processor, kGibOfDevice, 200 * kGibOfDevice).value() == 200 * kGibOfDevice);
}

TEST_CASE("a device comes back from its JSON") {
  DeviceFacts unknown = shared_gpu();
  unknown.speed = {};
  unknown.problem = "no memory is left on the device";
  const DeviceFacts processor{.kind = "cpu", .name = "cpu (avx2, 8 threads)", .reason = "no GPU"};
  for (const DeviceFacts& facts : {card(), unknown, processor}) {
    const auto read = read_device(device_json(facts));
    REQUIRE(read.ok());
    CHECK(read.value().kind == facts.kind);
    CHECK(read.value().name == facts.name);
    CHECK(read.value().reason == facts.reason);
    CHECK(read.value().is_gpu == facts.is_gpu);
    CHECK(read.value().has_own_memory == facts.has_own_memory);
    CHECK(read.value().memory_bytes == facts.memory_bytes);
    CHECK(read.value().free_bytes == facts.free_bytes);
    CHECK(read.value().problem == facts.problem);
    CHECK(speed_of_device(read.value()).read_bytes_s == speed_of_device(facts).read_bytes_s);
    CHECK(read.value().speed.kernel_us == facts.speed.kernel_us);
  }
  CHECK(speed_of_device(card()).read_bytes_s == 700'500'000'000);
  CHECK(speed_of_device(card()).operations_s == 2'000'000'000'000);
  CHECK(!read_device(JsonObject{{"name", "x"}}).ok());
  CHECK(!read_device(JsonObject{{"device", 3}}).ok());
}

TEST_CASE("another process examines a device, and its drivers may print what they like") {
  const auto good = examined(
      R"(echo 'MESA: a warning'; echo "{\"device\":\"vulkan:0\",\"name\":\"$*\"}"; echo bye >&2)");
  REQUIRE_MESSAGE(good.ok(), good.error().message);
  CHECK(good.value().kind == "vulkan:0");
  CHECK(good.value().name == "bench device --device vulkan --json");
}

TEST_CASE("a device that cannot be examined is a sentence with --device") {
  const auto message = [](const std::string& lines) {
    const auto facts = examined(lines);
    REQUIRE(!facts.ok());
    CHECK(facts.error().code == ErrorCode::kUnsupported);
    return facts.error().message;
  };
  CHECK(message("kill -SEGV $$") ==
        "--device vulkan: its test was ended by signal 11, so its driver crashes; update the "
        "driver");
  CHECK(message("echo 'lockstep: there is no GPU 9' >&2; echo noise; exit 2") ==
        "--device vulkan: there is no GPU 9");
  CHECK(!examined("echo nothing").ok());
}

TEST_CASE("the processor is measured in this process") {
  const auto facts = examine_device("cpu", 1);
  REQUIRE(facts.ok());
  CHECK(facts.value().kind == "cpu");
  CHECK(facts.value().name.starts_with("cpu ("));
  CHECK(!facts.value().is_gpu);
  CHECK(facts.value().problem.empty());
  CHECK(facts.value().speed.read_gb_s > 0);
  CHECK(!examine_device("vulcan", 1).ok());
}

// The file that `lockstep bench device --profile` writes, as plans read it.
#include "cli/bench/device_bench.h"

#include <doctest/doctest.h>

#include "planner/cluster_file.h"

using namespace lockstep;

namespace {

DeviceFacts measured_gpu() {
  return {.kind = "vulkan:0",
          .name = "Radeon (radv, Mesa 26.1.2)",
          .is_gpu = true,
          .speed = {.read_gb_s = 212.345, .kernel_us = 4.567, .wait_us = 20, .operations_s = 2e12}};
}

}  // namespace

TEST_CASE("a measured machine is a cluster for plans as it is") {
  const auto profile = profile_json("halo", measured_gpu(), uint64_t{100} << 30);
  REQUIRE(profile.ok());
  const auto cluster = parse_cluster(dump_json(profile.value()));
  REQUIRE_MESSAGE(cluster.ok(), cluster.error().message);
  REQUIRE(cluster.value().machines.size() == 1);
  const Machine& machine = cluster.value().machines.front();
  CHECK(machine.name == "halo");
  CHECK(machine.memory_bytes == uint64_t{100} << 30);
  CHECK(machine.read_bytes_per_us == doctest::Approx(212e3));
  CHECK(machine.kernel_us == doctest::Approx(4.57));
  CHECK(machine.exchange_us == doctest::Approx(25));
  CHECK(machine.operations_per_us == doctest::Approx(2e6));
  CHECK(machine.measured_on == "Radeon (radv, Mesa 26.1.2)");
  CHECK(machine.has_estimates);
  CHECK(!machine.is_other_software);
}

TEST_CASE("a machine whose speed is unknown has no profile") {
  DeviceFacts unknown = measured_gpu();
  unknown.problem = "no memory is left on the device";
  const auto profile = profile_json("halo", unknown, uint64_t{1} << 30);
  REQUIRE(!profile.ok());
  CHECK(profile.error().message == "no memory is left on the device");
}

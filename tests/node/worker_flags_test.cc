#include "node/worker/worker_flags.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lockstep;

namespace {

Result<WorkerFlags> parse(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  return parse_worker_arguments(pointers);
}

}  // namespace

TEST_CASE("worker flags: a worker reads the flags that its node writes") {
  const WorkerFlags flags{.control_fd = 3,
                          .files = {.model = "/models/a b", .draft_model = "/models/small"},
                          .hosts = {"::", "fe80::1%eth0", "10.0.0.2"},
                          .paths = {{}, {{{"10.86.12.1", "10.86.12.2"}}, ""}, {{}, "no, \"why\""}},
                          .machine_ranks = 2,
                          .cache = {.folder = "/caches/a b", .bytes = uint64_t{1} << 40},
                          .device = "vulkan:1",
                          .forbids_core_dumps = true};
  const auto read = parse(worker_arguments(flags));
  REQUIRE(read.ok());
  CHECK(read.value().control_fd == 3);
  CHECK(read.value().files == flags.files);
  CHECK(read.value().hosts == flags.hosts);
  CHECK(read.value().paths == flags.paths);
  CHECK(read.value().machine_ranks == 2);
  CHECK(read.value().cache.folder == flags.cache.folder);
  CHECK(read.value().cache.bytes == flags.cache.bytes);
  CHECK(read.value().device == "vulkan:1");
  CHECK(read.value().forbids_core_dumps);
  CHECK(worker_arguments({.control_fd = 3}) == std::vector<std::string>{"--control-fd", "3"});
}

TEST_CASE("worker flags: an invalid flag is named") {
  CHECK(parse({}).error().message == "`lockstep worker` is started by `lockstep serve`");
  CHECK(parse({"--control-fd"}).error().message == "--control-fd needs a value");
  CHECK(parse({"--control-fd", "3x"}).error().message.starts_with("--control-fd 3x: a number"));
  CHECK(parse({"--control-fd", "3", "--size", "2"}).error().message ==
        "a worker has no flag --size");
  CHECK_FALSE(parse({"--control-fd", "3", "--machine-ranks", "0"}).ok());
  CHECK_FALSE(parse({"--control-fd", "3", "--cache-bytes", "-1"}).ok());
  CHECK_FALSE(parse({"--control-fd", "3", "--data-paths", R"([{"paths":[{"own":"a"}]}])"}).ok());
  CHECK_FALSE(parse({"--control-fd", "3", "--cache-bytes", "1152921504606846976"}).ok());
}

TEST_CASE("worker flags: the ranks of one machine connect over loopback") {
  const MachineHosts machine{.ranks = {0, 2},
                             .hosts = {"::", "10.0.0.2", "::"},
                             .paths = {{}, {{{"10.9.0.1", "10.9.0.2"}}, ""}, {}}};
  const WorkerFlags flags = flags_of_rank(2, {.model = "/m"}, machine);
  CHECK(flags.hosts == std::vector<std::string>{"127.0.0.1", "10.0.0.2", "::"});
  CHECK(flags.paths == machine.paths);
  CHECK(flags.machine_ranks == 2);
  CHECK(flags.files == LocalPaths{.model = "/m"});
  const MachineHosts known{.ranks = {0, 1}, .hosts = {"10.0.0.1", "10.0.0.1"}};
  CHECK(flags_of_rank(1, {}, known).hosts == known.hosts);
}

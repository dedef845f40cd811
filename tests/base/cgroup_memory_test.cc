#include "base/machine/cgroup_memory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/temporary_folder.h"

using namespace lockstep;

namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("control groups: the smallest limit of all groups above the process counts") {
  const TemporaryFolder folder;
  const auto& root = folder.path();
  write(root / "system.slice/memory.max", "1000\n");
  write(root / "system.slice/memory.current", "400\n");
  write(root / "system.slice/own.service/memory.max", "max\n");
  write(root / "system.slice/own.service/memory.current", "300\n");
  CHECK(cgroup_memory_left(root, "0::/system.slice/own.service\n") == 600);
  CHECK(cgroup_memory_left(root, "0::/user.slice\n") == std::nullopt);
  write(root / "system.slice/own.service/memory.max", "500\n");
  CHECK(cgroup_memory_left(root, "0::/system.slice/own.service\n") == 200);
  write(root / "system.slice/own.service/memory.stat", "anon 100\ninactive_file 150\nslab 3\n");
  CHECK(cgroup_memory_left(root, "0::/system.slice/own.service\n") == 350);
  write(root / "system.slice/own.service/memory.max", "120\n");
  CHECK(cgroup_memory_left(root, "0::/system.slice/own.service\n") == 0);
}

TEST_CASE("control groups: version 1, and a container that sees only its own root") {
  const TemporaryFolder folder;
  const auto& root = folder.path();
  write(root / "memory/memory.limit_in_bytes", "5000\n");
  write(root / "memory/memory.usage_in_bytes", "1000\n");
  write(root / "memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  CHECK(cgroup_memory_left(root, "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/\n") == 4500);
  write(root / "memory.max", "100\n");
  write(root / "memory.current", "40\n");
  CHECK(cgroup_memory_left(root, "4:memory:/docker/abc\n0::/\n") == 60);
}

TEST_CASE("control groups: invalid text means no limits") {
  const TemporaryFolder folder;
  for (const char* text : {"", "\n\n", "memory", "4:memory", ":::", "4:memory:", "0::"}) {
    CHECK(cgroup_memory_left(folder.path(), text) == std::nullopt);
  }
}

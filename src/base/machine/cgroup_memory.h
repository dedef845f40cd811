// How much memory the control groups of this process leave it (Linux, version 1 and 2): a
// container's, a service's with MemoryMax, a batch job's. Used by base/machine/available_memory.cc.
// Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace lockstep {

// `root` is where control groups are mounted (/sys/fs/cgroup), `memberships` the text of
// /proc/self/cgroup. The least that any group from the process's own up to the root leaves; cached
// files that the kernel can drop count as free. Nullopt if no group has a limit.
std::optional<uint64_t> cgroup_memory_left(const std::filesystem::path& root,
                                           std::string_view memberships);

}  // namespace lockstep

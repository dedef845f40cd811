// How much memory this process can still take without the machine running out. Any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

// Bytes that are free or can be freed at once, within a container's limit. Nullopt if the system
// does not tell.
std::optional<uint64_t> available_memory_bytes();

}  // namespace lockstep

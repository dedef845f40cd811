// How much memory this process can still take without the machine running out. Any thread.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

// Bytes that are free or can be freed at once, and no more than a container allows. Nullopt where
// the system does not say.
std::optional<uint64_t> available_memory_bytes();

}  // namespace lockstep

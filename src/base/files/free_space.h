// The space that is left on a disk. It takes as long as the disk does to answer. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace lockstep {

// `path`, or the nearest folder above it that exists: the one in which it would be created.
std::filesystem::path nearest_there(std::filesystem::path path);

// Bytes that this user may write at nearest_there(path); nullopt if the disk does not say.
std::optional<uint64_t> free_bytes_at(const std::filesystem::path& path);

}  // namespace lockstep

// Opens files at paths given from outside, and reads and writes at an offset, repeating partial
// calls. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/files/unique_fd.h"
#include "base/result.h"

namespace lockstep {

enum class Links { kFollow, kRefuse };

// A regular file, for reading: the only way to open a path from outside, since open(2) waits at a
// named pipe for its writer, and reading a device may never end. kNotFound, kInvalidArgument (a
// folder, a pipe, a device) or kInternal (no permission); the sentence names the path.
Result<UniqueFd> open_regular(const std::filesystem::path& path, Links links = Links::kFollow);

// The number of bytes read: less than requested only at the end of the file. -1 with errno on an
// error.
ssize_t read_at(int fd, std::span<std::byte> bytes, uint64_t offset);

// False with errno if not everything could be written.
bool write_at(int fd, std::span<const std::byte> bytes, uint64_t offset);

}  // namespace lockstep

// Reading and writing a file at an offset, whatever parts of it a call takes. Any thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep {

// How many bytes were there: less than asked for only at the end of the file. -1 with errno where
// it cannot be read.
ssize_t read_at(int fd, std::span<std::byte> bytes, uint64_t offset);

// False with errno where not all could be written.
bool write_at(int fd, std::span<const std::byte> bytes, uint64_t offset);

}  // namespace lockstep

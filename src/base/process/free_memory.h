// Memory that the process has freed but its allocator keeps. Any thread.
#pragma once

namespace lockstep {

// Returns it to the system. Takes milliseconds if there is much; for code that has just freed a
// lot. No-op if the C library is not glibc, the only one that keeps that much.
void return_free_memory();

}  // namespace lockstep

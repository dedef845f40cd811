// Memory that the process has freed but its allocator keeps. Any thread.
#pragma once

namespace lockstep {

// Returns it to the system. Takes milliseconds if there is much; for code that has just freed a
// lot. No-op if the C library is not glibc, the only one that keeps that much.
void return_free_memory();

// From now on, blocks of 1 MiB and more go back as soon as they are freed. glibc otherwise raises
// that size to the largest block that was freed (32 MiB at most), after which large requests come
// from heaps that keep their memory. For processes that hold such blocks only briefly; call it
// first. No-op without glibc.
void return_large_blocks_at_once();

}  // namespace lockstep

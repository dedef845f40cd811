// Facts about this machine that decide how many threads compute and where. Any thread.
#pragma once

namespace lockstep {

// Processors that this process may use at the same time: its affinity mask, and a container's share
// of processor time; on macOS those that are not made for efficiency. The mask is read once, before
// anything pins a thread. At least 1.
int available_core_count();

// All processors that are online, whether or not this process may use them.
int machine_core_count();

// Whether the process was allowed on this processor when it started.
bool is_core_allowed(int core);

// Binds the calling thread to one processor; false, with no change, if that is not possible.
bool pin_this_thread(int core);

}  // namespace lockstep

// The state and statistics of a rank's page store (engine/store/page_store.h), for display.
#pragma once

#include <cstdint>

namespace lockstep {

struct PageStoreCounts {
  uint64_t bytes = 0;    // in the folder, of all models and processes, as last counted
  uint64_t pages = 0;    // of this model, readable by this rank
  uint64_t saved = 0;    // written by this process
  uint64_t loaded = 0;   // read by this process
  uint64_t dropped = 0;  // given to save() and not written, or found broken

  bool operator==(const PageStoreCounts&) const = default;
};

}  // namespace lockstep

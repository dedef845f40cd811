// What a rank's store of pages has and has done (engine/page_store.h), for whoever watches.
#pragma once

#include <cstdint>

namespace lockstep {

struct PageStoreCounts {
  uint64_t bytes = 0;    // in the folder, of all models and processes, as last seen
  uint64_t pages = 0;    // of this model, that this rank can read
  uint64_t saved = 0;    // written by this process
  uint64_t loaded = 0;   // read by this process
  uint64_t dropped = 0;  // given to save() and not written, or found broken

  bool operator==(const PageStoreCounts&) const = default;
};

}  // namespace lockstep

// DiskCache: where and how much prompt state a node's workers may keep on its disk
// (engine/store/page_store.h). Each node has its own, unknown to groups that span nodes. Set-up
// only; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace lockstep {

inline constexpr uint64_t kDiskCacheBytesMax = uint64_t{1} << 50;

struct DiskCache {
  std::string folder{};
  uint64_t bytes = 0;  // of all models and workers together; 0: nothing is kept
};

// `bytes` in LOCKSTEP_HOME/pages if that is set, else in the user's cache folder:
// XDG_CACHE_HOME/lockstep/pages, or ~/.cache/lockstep/pages.
Result<DiskCache> disk_cache(uint64_t bytes);
// 8 GiB there, but at most a tenth of that disk's free space. An error says why there is none.
Result<DiskCache> default_disk_cache();

}  // namespace lockstep

// Links between ranks that are threads of one process: for tests and benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "transport/link.h"
#include "transport/link_options.h"

namespace lockstep {

// links[i][j] is rank i's link to rank j; null if i == j or the topology has no link.
using LocalLinks = std::vector<std::vector<std::unique_ptr<Link>>>;

// kUnsupported if verbs are requested and this machine has none: there is no fallback.
Result<LocalLinks> open_local_links(const LinkOptions& options, int size, uint32_t epoch = 1);

inline Result<LocalLinks> open_local_links(LinkKind kind, int size, uint32_t epoch = 1) {
  return open_local_links(LinkOptions{.kind = kind}, size, epoch);
}

}  // namespace lockstep

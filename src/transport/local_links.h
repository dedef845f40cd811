// Links between ranks that are threads of one process: for tests and benchmarks.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "transport/link.h"
#include "transport/link_kind.h"

namespace lockstep {

// links[i][j] is rank i's link to rank j; null where i == j.
using LocalLinks = std::vector<std::vector<std::unique_ptr<Link>>>;

Result<LocalLinks> open_local_links(LinkKind kind, int size, uint32_t epoch = 1);

}  // namespace lockstep

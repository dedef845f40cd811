// A cluster as a JSON file, for `lockstep plan --cluster FILE`:
//
//   {"machines": [{"name": "studio", "profile": "mac-studio-m3-ultra", "count": 2},
//                 {"name": "box", "memory_gib": 60, "read_gb_s": 41, "kernel_us": 0.3}],
//    "link": "10gbe",
//    "links": [{"between": ["studio-1", "studio-2"], "profile": "tb5-rdma"}],
//    "topology": "mesh"}
//
// "link" joins all that `topology` joins, "links" says more of single pairs (measured figures);
// without "link" only the pairs of "links" are joined. docs/planner.md lists the figures.
#pragma once

#include <string_view>

#include "base/result.h"
#include "planner/cluster_facts.h"

namespace lockstep {

// kCorrupt for what is no JSON, kInvalidArgument or kNotFound with the object and the key for what
// makes no sense.
Result<ClusterFacts> parse_cluster(std::string_view text);

}  // namespace lockstep

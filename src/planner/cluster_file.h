// A cluster as a JSON file, for `lockstep plan --cluster FILE`:
//
//   {"machines": [{"name": "studio", "profile": "mac-studio-m3-ultra", "count": 2},
//                 {"name": "box", "memory_gib": 60, "read_gb_s": 41, "kernel_us": 0.3}],
//    "link": "10gbe",
//    "links": [{"between": ["studio-1", "studio-2"], "profile": "tb5-rdma"}],
//    "topology": "mesh"}
//
// "link" connects all pairs in `topology`, "links" adds measured figures for single pairs; without
// "link" only the latter are connected. docs/planner.md lists the figures.
#pragma once

#include <string_view>

#include "base/result.h"
#include "planner/facts/cluster_facts.h"

namespace lockstep {

// kCorrupt for invalid JSON, kInvalidArgument or kNotFound with the object and the key of an
// invalid value.
Result<ClusterFacts> parse_cluster(std::string_view text);

}  // namespace lockstep

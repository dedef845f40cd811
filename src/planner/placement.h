// Placement: which machine holds what of a model, for all its groups. What a planner proposes and
// a cluster applies; the shares and stages are those of EngineOptions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/cut.h"

namespace lockstep {

enum class PlacementKind {
  kOne,             // one machine alone
  kTensor,          // every machine has a part of every layer
  kPipeline,        // every machine has some layers
  kTensorPipeline,  // stages of several machines each
  kReplicas,        // several groups, each with the whole model
};
std::string_view placement_kind_name(PlacementKind kind);

// What a rank takes of its machine's memory.
struct RankMemory {
  uint64_t weight_bytes = 0;  // checkpoint bytes of its share, as the engine reports them
  uint64_t packed_bytes = 0;  // the matrices as they are laid out for the kernels
  uint64_t vector_bytes = 0;  // norms and biases, in float32
  uint64_t state_bytes = 0;   // keys and values of all streams, as the engine reports them
  uint64_t buffer_bytes = 0;  // activations of one step
  // The program, stacks, scratch, buffers of links, what makes grammars of constraints: allowances;
  // and pages on their way to a disk.
  uint64_t process_bytes = 0;

  uint64_t total() const {
    return packed_bytes + vector_bytes + state_bytes + buffer_bytes + process_bytes;
  }
};

// Ranks that share one copy of the model, in stages of the same number of ranks each.
struct PlacedGroup {
  struct Rank {
    size_t machine = 0;  // its index in the cluster
    double share = 1;
    Range layers;
    int subtrees = 0;  // vectors that it sends in each sum, the most of all sums
    RankMemory memory{};
  };

  std::vector<Rank> ranks;
  int stages = 1;
};

struct Placement {
  PlacementKind kind = PlacementKind::kOne;
  std::vector<PlacedGroup> groups;

  size_t machine_count() const {
    size_t count = 0;
    for (const PlacedGroup& group : groups) count += group.ranks.size();
    return count;
  }
};

}  // namespace lockstep

// Placement: which machine holds which part of a model, for all its groups. A planner proposes it
// and a cluster applies it; shares and stages are those of GroupSpec.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/load/cut.h"

namespace lockstep {

enum class PlacementKind {
  kOne,             // one machine alone
  kTensor,          // every machine has a part of every layer
  kPipeline,        // every machine has some layers
  kTensorPipeline,  // stages of several machines each
  kReplicas,        // several groups, each with the whole model
};
std::string_view placement_kind_name(PlacementKind kind);

// The memory that a rank takes on its machine.
struct RankMemory {
  uint64_t weight_bytes = 0;  // checkpoint bytes of its share, as the engine reports them
  uint64_t packed_bytes = 0;  // the matrices in the kernels' layout
  uint64_t vector_bytes = 0;  // norms and biases, in float32
  uint64_t state_bytes = 0;   // keys and values of all streams, as the engine reports them
  uint64_t buffer_bytes = 0;  // activations of one step
  // Allowances for the program, stacks, scratch, link buffers and the making of grammars; and pages
  // on their way to disk.
  uint64_t process_bytes = 0;

  uint64_t total() const {
    return packed_bytes + vector_bytes + state_bytes + buffer_bytes + process_bytes;
  }
  void add(const RankMemory& other) {
    weight_bytes += other.weight_bytes;
    packed_bytes += other.packed_bytes;
    vector_bytes += other.vector_bytes;
    state_bytes += other.state_bytes;
    buffer_bytes += other.buffer_bytes;
    process_bytes += other.process_bytes;
  }
};

// Ranks that share one copy of the model, in stages of equal size.
struct PlacedGroup {
  struct Rank {
    size_t machine = 0;  // its index in the cluster
    double share = 1;
    Range layers;
    int subtrees = 0;  // vectors sent in each sum, the most of all sums
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

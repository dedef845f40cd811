// WeightCounter: the bytes that ranks of any cut load of each weight, without reading a file. The
// loader itself runs, over a source that knows only how the weight is stored, and a device that
// counts. For the planner.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/load/weights.h"

namespace lockstep {

// A weight of the table as its checkpoint stores it. The experts of a layer are stored alike, and
// so are the heads of a weight: the first one stands for them.
struct StoredWeight {
  Weight weight;
  int copies = 1;            // the number of experts
  double element_bytes = 0;  // in the checkpoint, including scales
  // Those that the loader requests, by name; empty for a vector.
  std::vector<std::pair<std::string, StoredMatrix>> matrices;
  DType vector_type = DType::kF32;
};

// Reads only sizes. `whole`: the cut for one rank. Errors are those of load_weights().
Result<StoredWeight> stored_weight(const WeightSource& source, const ModelConfig& config,
                                   const Cut& whole, const Weight& weight);

// The bytes of a rank's part of a weight, for all experts.
struct WeightBytes {
  uint64_t stored = 0;   // in the checkpoint
  uint64_t packed = 0;   // matrices laid out for the kernels
  uint64_t vectors = 0;  // floats of norms and biases
};

// One thread.
class WeightCounter {
 public:
  // `config`, and the weights to be counted, must outlive it.
  explicit WeightCounter(const ModelConfig& config) : config_(config) {}

  // kUnsupported or kCorrupt if a matrix cannot be laid out.
  Result<WeightBytes> count(const StoredWeight& stored, const Cut& cut, int rank);

 private:
  using Key = std::tuple<const StoredWeight*, int, int, int, int>;

  const ModelConfig& config_;
  std::map<Key, WeightBytes> counted_;  // one for each weight and part
};

}  // namespace lockstep

// Counts a model's parts from its config and, if available, its checkpoint: parameters, bytes, bits
// per weight, memory of its state. For `lockstep show` and `bench --shape`. Pure arithmetic over
// the weight table; no weights are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"
#include "model/options/kv_kind.h"
#include "weights/weight_source.h"

namespace lockstep {

enum class WeightClass {
  kEmbedding,
  kHead,  // absent if it is the embedding
  kAttention,
  kFeedForward,  // of dense layers
  kSharedExperts,
  kExperts,
  kRouter,
  kNorms,  // and biases
  kLayerInputs,
  kIndex,           // of sparse attention
  kStreams,         // of the residual
  kWholeAttention,  // what every rank has of compressed attention
  kNgrams,          // tables, and what is made of their rows
};
inline constexpr int kWeightClassCount = 13;
std::string_view weight_class_name(WeightClass weight_class);
// Whether each rank of a stage reads all of them for a token, instead of a part.
bool is_whole(WeightClass weight_class);

struct WeightCount {
  uint64_t parameters = 0;
  uint64_t token_parameters = 0;  // used per token: the chosen experts only, without an embedding
                                  // that is only looked up
  uint64_t bytes = 0;             // as stored, including scales; 0 without a checkpoint
  uint64_t token_bytes = 0;

  double bits() const {
    return parameters == 0 ? 0 : static_cast<double>(bytes) * 8 / static_cast<double>(parameters);
  }
  void add(const WeightCount& other);
};

struct ClassSummary {
  WeightClass weight_class;
  WeightCount count;
  std::vector<std::string> formats;  // "BF16", "MLX 4 bit, group 64"
};

struct ModelSummary {
  std::vector<ClassSummary> classes;  // only classes that the model has
  std::vector<WeightCount> layers;
  WeightCount total;
};

// "Q4_K", "FP8 E4M3, scales by 128 x 128".
std::string stored_format_name(const StoredMatrix& matrix);

// `source` may be null: then there are no bytes and formats. Errors are the source's.
Result<ModelSummary> summarise(const ModelConfig& config, const WeightSource* source);

// Bytes that all ranks together store for `tokens` tokens of a sequence, in whole pages, of which
// only the last ones have a window page. Ranks that share a key/value head each store it, and each
// rank stores the latent of latent attention.
uint64_t state_bytes(const ModelConfig& config, KvKind kv, int tokens);
uint64_t state_bytes_of_pages(const ModelConfig& config, KvKind kv, int pages, int window_pages);
// Bytes of a sequence's state in all recurrent layers, whatever the number of tokens.
uint64_t recurrent_bytes(const ModelConfig& config);

}  // namespace lockstep

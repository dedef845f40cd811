// Weights: one rank's share of a checkpoint on its device, laid out for the kernels. Built once at
// load.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "device/device.h"
#include "model/load/cut.h"
#include "model/load/weight_table.h"
#include "weights/weight_source.h"

namespace lockstep {

// The places of one layer's (or the shared) weights: matrices by MatrixId, norms as floats in a
// buffer.
struct LayerWeights {
  std::array<MatrixId, kRoleCount> matrices{};
  std::array<Slice, kRoleCount> vectors{};

  ExpertMatrices experts;
  // Latent attention, for each of this rank's heads: query to latent (transposed key matrix),
  // latent to value.
  std::vector<MatrixId> absorb;
  std::vector<MatrixId> values;
  // Compressed attention, for each of this rank's groups of heads: their results to one latent.
  std::vector<MatrixId> groups;
  // The delta rule, for queries, keys and values: matrices (unless they are grouped), and weights
  // of convolutions as (taps, channels).
  std::array<MatrixId, 3> delta_inputs{};
  std::array<Slice, 3> delta_convolutions{};
  std::vector<MatrixId> ngram_rows;  // this rank's rows of each part of the table

  MatrixId matrix(Role role) const { return matrices[static_cast<size_t>(role)]; }
  Slice vector(Role role) const { return vectors[static_cast<size_t>(role)]; }
};

struct Weights {
  LayerWeights shared;
  std::vector<LayerWeights> layers;  // (all layers); empty if not loaded
  NgramConstants ngrams;             // if the model has n-grams; not yet checked
  uint64_t weight_bytes = 0;         // of this rank's parts, by the weight table
  uint64_t token_bytes = 0;  // of weight_bytes, those read per token: no separate embedding, only
                             // the chosen experts
  uint64_t read_bytes = 0;   // actually read from the checkpoint
};

// The weights that a rank loads: its part of some layers, with the embedding if the first layer is
// among them, and with the final norm and the LM head if the last one is.
struct WeightShare {
  const Cut& cut;
  int rank = 0;  // of the cut
  Range layers;
};
bool is_loaded(const Weight& weight, const ModelConfig& config, Range layers);

struct LoadContext {
  const WeightSource& source;
  const ModelConfig& config;
  WeightShare share;
  Device& device;
  Progress* progress = nullptr;  // gets the bytes while they are read; null: nobody asks
};
// Errors name the tensor: missing, of another shape, or of a type that cannot be computed with.
// Pages of the files are released as soon as their weights are laid out.
Result<Weights> load_weights(const LoadContext& context);

// Whether the model's norms are stored less 1: those of a draft layer in files of its own may be
// stored in another way (WeightSource::lowers_draft_norms()).
bool lowers_norms(const WeightSource& source, const ModelConfig& config);

// The weight_bytes that load_weights() will have, without reading them.
Result<uint64_t> share_bytes(const LoadContext& context);

// One weight of the table alone, into its layer's place: for code that counts
// (model/load/weight_counter.h). Returns its bytes in the checkpoint.
Result<uint64_t> load_weight(const LoadContext& context, const Weight& weight, LayerWeights& place);

}  // namespace lockstep

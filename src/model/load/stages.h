// How the layers of a model are divided among the stages of a pipeline. Pure arithmetic over the
// bytes a token reads; every rank gets the same result.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "model/config/config.h"
#include "model/load/cut.h"
#include "weights/weight_source.h"

namespace lockstep {

// Checkpoint bytes that a token reads: of the experts only the chosen ones, of the embedding one
// row. Norms and biases are left out.
struct TokenBytes {
  std::vector<double> layers;
  // (layers), or empty: whether a layer is on the stage of the one before it, as joined_layers()
  // says.
  std::vector<bool> joined;
  double embedding = 0;
  double head = 0;

  int stages_max() const;
};

// Whether each layer must be on the stage of the one before it: it, or a later one, uses keys and
// values, or a choice of positions, of an earlier layer.
std::vector<bool> joined_layers(const ModelConfig& config);

Result<TokenBytes> token_bytes_of(const WeightSource& source, const ModelConfig& config);

// The layers of each stage: contiguous, at least one each, so that the slowest stage (its bytes,
// with the embedding in the first and the LM head in the last, divided by its share) is as fast as
// possible, and the others as even as that allows. kInvalidArgument if there are more stages than
// layers, not counting those that are joined to the one before.
Result<std::vector<Range>> deal_layers(const TokenBytes& bytes, std::span<const double> shares);

// The sums of the shares of each stage's ranks; `stages` divides their number.
std::vector<double> stage_shares(std::span<const double> rank_shares, int stages);

}  // namespace lockstep

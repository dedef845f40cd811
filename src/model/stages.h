// How the layers of a model are dealt to the stages of a pipeline. Pure arithmetic over what a
// token touches; every rank comes to the same result.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "model/config.h"
#include "model/cut.h"
#include "weights/weight_source.h"

namespace lockstep {

// Bytes of the checkpoint that a token touches: of the experts the chosen ones, of the embedding
// one row. Norms and biases are left out.
struct TokenBytes {
  std::vector<double> layers;
  double embedding = 0;
  double head = 0;
};

Result<TokenBytes> token_bytes_of(const WeightSource& source, const ModelConfig& config);

// The layers of each stage: neighbours, at least one for each, so that the stage that takes longest
// (its bytes, with the embedding in the first and the LM head in the last, divided by its share)
// is as fast as can be, and the others as even as that allows. kInvalidArgument where there are
// more stages than layers.
Result<std::vector<Range>> deal_layers(const TokenBytes& bytes, std::span<const double> shares);

// The sums of the shares of each stage's ranks; `stages` divides their number.
std::vector<double> stage_shares(std::span<const double> rank_shares, int stages);

}  // namespace lockstep

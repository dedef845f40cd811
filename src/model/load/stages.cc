#include "model/load/stages.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/load/weight_table.h"
#include "tensor/stored_check.h"

namespace lockstep {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Requests one row of each matrix: the smallest request that a source may have to convert.
Result<double> bytes_of(const WeightSource& source, const ModelConfig& config,
                        const Weight& weight) {
  MatrixRequest request{.name = weight.name,
                        .stack_index = weight.expert,
                        .rows = weight.rows,
                        .columns = weight.columns,
                        .row_end = 1};
  std::string name_of_keys = weight.name;
  constexpr std::string_view kJoined = "kv_b_proj";
  const size_t joined = weight.name.find(kJoined);
  if (weight.role == Role::kKvUp && joined != std::string::npos && !source.has(weight.name)) {
    // Stored as one stack of heads for keys and one for values, both alike.
    request.name = name_of_keys.replace(joined, kJoined.size(), "embed_q");
    request.stack_index = 0;
    request.rows = config.latent.kv_rank;
    request.columns = config.latent.nope;
  }
  const StoredMatrix stored = TRY(source.matrix(request));
  const double element = static_cast<double>(stored_bytes(stored)) /
                         (static_cast<double>(stored.rows) * stored.columns);
  return element * weight.rows * weight.columns;
}

// The cost to each stage of the layers [begin, end).
struct Loads {
  Loads(const TokenBytes& bytes, std::span<const double> shares) : bytes(bytes), shares(shares) {
    sums.push_back(0);
    for (const double layer : bytes.layers) sums.push_back(sums.back() + layer);
  }
  double of(size_t stage, size_t begin, size_t end) const {
    double load = sums[end] - sums[begin];
    if (stage == 0) load += bytes.embedding;
    if (stage + 1 == shares.size()) load += bytes.head;
    return load / shares[stage];
  }

  const TokenBytes& bytes;
  std::span<const double> shares;
  std::vector<double> sums;  // of the first i layers
};

// The best division of all layers, where `join` adds a stage's cost to the cost of the stages
// before it and less is better. Fills the end of each stage.
template <class Join>
double best_ends(const Loads& loads, Join join, std::vector<size_t>& ends) {
  const size_t stages = loads.shares.size(), layers = loads.bytes.layers.size();
  // cost[stage][end]: for the stages up to `stage`, which have the first `end` layers.
  std::vector<std::vector<double>> cost(stages, std::vector<double>(layers + 1, kNever));
  std::vector<std::vector<size_t>> from(stages, std::vector<size_t>(layers + 1, 0));
  for (size_t end = 1; end <= layers; ++end) cost[0][end] = join(0.0, loads.of(0, 0, end));
  for (size_t stage = 1; stage < stages; ++stage) {
    for (size_t end = stage + 1; end <= layers; ++end) {
      for (size_t begin = stage; begin < end; ++begin) {
        if (!loads.bytes.joined.empty() && loads.bytes.joined[begin]) continue;
        const double joined = join(cost[stage - 1][begin], loads.of(stage, begin, end));
        if (joined >= cost[stage][end]) continue;
        cost[stage][end] = joined;
        from[stage][end] = begin;
      }
    }
  }
  ends.assign(stages, layers);
  for (size_t stage = stages - 1; stage > 0; --stage) ends[stage - 1] = from[stage][ends[stage]];
  return cost[stages - 1][layers];
}

}  // namespace

int TokenBytes::stages_max() const {
  return static_cast<int>(layers.size()) -
         static_cast<int>(std::count(joined.begin(), joined.end(), true));
}

std::vector<bool> joined_layers(const ModelConfig& config) {
  int first_used = config.layers;  // a later layer uses its keys and values
  for (const LayerTraits& layer : config.traits) {
    if (!layer.has_state()) first_used = std::min(first_used, layer.state_layer);
  }
  std::vector<bool> joined;
  for (int layer = 0; layer < config.layers; ++layer) {
    // The first stage looks up the rows of n-grams.
    const bool is_before_ngrams = config.ngrams && layer > 0 && layer <= config.ngrams->layer;
    joined.push_back(layer > first_used || config.layer(layer).shares_choice || is_before_ngrams);
  }
  return joined;
}

Result<TokenBytes> token_bytes_of(const WeightSource& source, const ModelConfig& config) {
  TokenBytes bytes{.layers = std::vector<double>(static_cast<size_t>(config.layers), 0.0),
                   .joined = joined_layers(config)};
  for (const Weight& weight : weight_table(config)) {
    // All experts of a layer are alike: the first one stands for the chosen ones.
    if (weight.is_vector || weight.expert > 0 || weight.layer >= config.layers) continue;
    if (weight.role == Role::kNgramRows) continue;  // a token reads a few of them
    const double stored = TRY(bytes_of(source, config, weight));
    if (weight.layer >= 0) {
      const double times = weight.expert == 0 ? config.experts.chosen : 1;
      bytes.layers[static_cast<size_t>(weight.layer)] += times * stored;
    } else if (weight.role == Role::kLayerEmbedding) {
      bytes.embedding += stored / config.vocab_size;
    } else if (weight.role == Role::kLayerProjection) {
      bytes.embedding += stored;
    } else if (weight.role == Role::kEmbedding) {
      bytes.embedding += stored / config.vocab_size;
      if (config.tied_embeddings) bytes.head = stored;
    } else if (weight.role == Role::kLogits) {
      bytes.head = stored;
    }
  }
  return bytes;
}

Result<std::vector<Range>> deal_layers(const TokenBytes& bytes, std::span<const double> shares) {
  LOCKSTEP_CHECK(!shares.empty());
  const int most = bytes.stages_max();
  if (shares.size() > static_cast<size_t>(most)) {
    const bool has_groups = static_cast<size_t>(most) < bytes.layers.size();
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the model has {} layers{}, too few for {} stages", bytes.layers.size(),
                    has_groups ? fmt::format(" in {} groups that use each other's keys "
                                             "or choices of positions",
                                             most)
                               : "",
                    shares.size())};
  }
  const Loads loads(bytes, shares);
  std::vector<size_t> ends;
  const double slowest = best_ends(
      loads, [](double before, double own) { return std::max(before, own); }, ends);
  constexpr double kRounding = 1 + 1e-9;
  const auto squares = [&](double before, double own) {
    return own <= slowest * kRounding ? before + own * own : kNever;
  };
  best_ends(loads, squares, ends);
  std::vector<Range> ranges;
  int begin = 0;
  for (const size_t end : ends) {
    ranges.push_back({begin, static_cast<int>(end)});
    begin = ranges.back().end;
  }
  return ranges;
}

std::vector<double> stage_shares(std::span<const double> rank_shares, int stages) {
  const size_t ranks = rank_shares.size() / static_cast<size_t>(stages);
  LOCKSTEP_CHECK(ranks * static_cast<size_t>(stages) == rank_shares.size());
  std::vector<double> sums(static_cast<size_t>(stages), 0.0);
  for (size_t rank = 0; rank < rank_shares.size(); ++rank) sums[rank / ranks] += rank_shares[rank];
  return sums;
}

}  // namespace lockstep

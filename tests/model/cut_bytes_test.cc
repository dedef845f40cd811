// The bytes of cut weights that a token reads on each rank, for every known shape.
#include <doctest/doctest.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/load/shape_model.h"
#include "model/load/weight_table.h"
#include "model/shapes/known_shapes.h"
#include "model/valid_cut.h"

using namespace lockstep;

namespace {

// Columns of a quantisation group: none (BF16), MXFP4 and GGUF, MLX at 4 bits, FP8 blocks.
constexpr int kAlignments[] = {1, 32, 64, 128};

enum class Why {
  kHeads,    // the ranks do not divide the query heads
  kKvHeads,  // there are fewer key/value heads than ranks, so that they are replicated
  kGroups,   // the ranks do not divide the quantisation groups of feed-forward columns
};

// Where a rank reads more than 1.02 of its equal part: this number of ranks, these alignments.
struct Exception {
  std::string_view shape;
  int ranks;
  int alignment_min;
  double ratio;  // at most
  Why why;
};
constexpr Exception kExceptions[] = {
    {"qwen2.5-0.5b", 4, 1, 1.034, Why::kHeads},
    {"qwen2.5-0.5b", 8, 1, 1.079, Why::kHeads},
    {"qwen2.5-7b", 8, 1, 1.030, Why::kHeads},
    {"qwen3-4b", 8, 128, 1.036, Why::kGroups},
    {"qwen3-30b-a3b", 8, 1, 1.034, Why::kKvHeads},
    {"qwen3-coder-30b-a3b", 8, 1, 1.034, Why::kKvHeads},
    {"qwen3-coder-480b", 8, 128, 1.136, Why::kGroups},
    {"gpt-oss-20b", 4, 64, 1.045, Why::kGroups},
    {"gpt-oss-20b", 8, 32, 1.045, Why::kGroups},
    {"gpt-oss-120b", 4, 64, 1.047, Why::kGroups},
    {"gpt-oss-120b", 8, 32, 1.047, Why::kGroups},
    {"glm-4.5-air", 4, 64, 1.051, Why::kGroups},
    {"glm-4.5-air", 8, 32, 1.051, Why::kGroups},
    {"glm-4.7-flash", 8, 1, 1.052, Why::kHeads},
    {"qwen3-next-80b-a3b", 8, 1, 1.022, Why::kKvHeads},
    {"qwen3-coder-next", 8, 1, 1.022, Why::kKvHeads},
    {"qwen3.5-35b-a3b", 8, 1, 1.022, Why::kKvHeads},
    {"gemma-4-26b-a4b", 4, 32, 1.043, Why::kGroups},
    {"gemma-4-26b-a4b", 8, 32, 1.059, Why::kGroups},
    {"gemma-4-e4b", 8, 1, 1.049, Why::kKvHeads},
    {"gemma-4-e2b", 8, 1, 1.048, Why::kKvHeads},
};

const Exception* find_exception(std::string_view shape, int ranks, int alignment) {
  for (const Exception& exception : kExceptions) {
    if (exception.shape == shape && exception.ranks == ranks &&
        alignment >= exception.alignment_min) {
      return &exception;
    }
  }
  return nullptr;
}

Cut aligned_cut(const ModelConfig& config, int ranks, int alignment) {
  return cut_of(config, std::vector<double>(static_cast<size_t>(ranks), 1.0),
                {{.ffn = alignment, .experts = alignment}, true});
}

// The share of the cut weights that a token reads on the rank that reads most, in units of an equal
// part. Only the chosen experts count, all of which are cut alike, and no embedding that is only
// looked up.
double largest_ratio(const ModelConfig& config, std::span<const Weight> table, const Cut& cut) {
  std::vector<double> own(static_cast<size_t>(cut.rank_count()));
  double all = 0;
  for (const Weight& weight : table) {
    const bool is_looked_up = weight.role == Role::kLayerEmbedding ||
                              (weight.role == Role::kEmbedding && !config.tied_embeddings);
    if (weight.split == Split::kWhole || weight.expert > 0 || is_looked_up) continue;
    const double times = weight.expert == 0 ? config.experts.chosen : 1;
    all += times * weight.rows * weight.columns;
    for (int rank = 0; rank < cut.rank_count(); ++rank) {
      own[static_cast<size_t>(rank)] +=
          times * static_cast<double>(part_of(weight, cut, rank).elements());
    }
  }
  return *std::max_element(own.begin(), own.end()) * cut.rank_count() / all;
}

bool is_true(Why why, const ModelConfig& config, int ranks, int alignment) {
  if (why == Why::kHeads) return config.heads % ranks != 0;
  if (why == Why::kKvHeads) return config.kv_heads < ranks;
  const int columns = config.experts.count > 0 ? config.experts.ffn : config.ffn;
  return (columns + alignment - 1) / alignment % ranks != 0;
}

int rounded_up(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

// The columns of the widest run of `leaves` leaves, from the steps that cover all of them.
int widest_run(const std::vector<LeafStep>& steps, int leaves) {
  const size_t count = std::min(steps.size(), static_cast<size_t>(leaves));
  int widest = 0;
  for (size_t first = 0; first + count <= steps.size(); ++first) {
    int columns = 0;
    for (size_t i = first; i < first + count; ++i) columns += steps[i].columns;
    widest = std::max(widest, columns);
  }
  return widest;
}

}  // namespace

TEST_CASE("a token reads at most 1.02 / N of the cut weights on a rank, except as listed") {
  size_t exceptions_found = 0;
  for (const KnownShape& shape : known_shapes()) {
    const ModelConfig config = config_of_shape(std::string(shape.name));
    const std::vector<Weight> table = weight_table(config);
    for (const int alignment : kAlignments) {
      for (const int ranks : {2, 4, 8}) {
        CAPTURE(shape.name);
        CAPTURE(alignment);
        CAPTURE(ranks);
        const double ratio = largest_ratio(config, table, aligned_cut(config, ranks, alignment));
        const Exception* exception = find_exception(shape.name, ranks, alignment);
        if (!exception) {
          CHECK(ratio <= 1.02);
          continue;
        }
        CHECK(ratio > 1.02);
        CHECK(ratio <= exception->ratio);
        CHECK(is_true(exception->why, config, ranks, alignment));
        exceptions_found += exception->alignment_min == alignment ? 1 : 0;
      }
    }
  }
  CHECK(exceptions_found == std::size(kExceptions));
}

TEST_CASE("no rank has more of a dimension than the largest share of its leaves") {
  for (const KnownShape& shape : known_shapes()) {
    const ModelConfig config = config_of_shape(std::string(shape.name));
    for (const int alignment : kAlignments) {
      const Cut whole = aligned_cut(config, 1, alignment);
      for (const int ranks : {2, 3, 4, 5, 6, 7, 8}) {
        CAPTURE(shape.name);
        CAPTURE(alignment);
        CAPTURE(ranks);
        const Cut cut = aligned_cut(config, ranks, alignment);
        const int ffn_leaves = rounded_up(cut.ffn_shares().leaf_count(), ranks);
        const int expert_leaves = rounded_up(cut.expert_shares().leaf_count(), ranks);
        const int head_leaves = cut.head_shares().leaf_count();
        const bool whole_groups = ranks <= config.kv_heads && head_leaves % config.kv_heads == 0;
        const int head_units = whole_groups ? config.kv_heads : head_leaves;
        const int heads = rounded_up(head_units, ranks) * (config.heads / head_units);
        const int tokens = rounded_up(kLeavesMax, ranks) * rounded_up(config.vocab_size, 64);
        for (int rank = 0; rank < ranks; ++rank) {
          CHECK(cut.ffn(rank).size() <= widest_run(whole.ffn_steps(0), ffn_leaves));
          CHECK(cut.expert_ffn(rank).size() <= widest_run(whole.expert_steps(0), expert_leaves));
          CHECK(cut.shared_ffn(rank).size() <= widest_run(whole.shared_steps(0), expert_leaves));
          CHECK(cut.heads(rank).size() <= heads);
          CHECK(cut.kv_heads(rank).size() <=
                (whole_groups ? heads / config.heads_per_kv()
                              : rounded_up(heads - 1, config.heads_per_kv()) + 1));
          CHECK(cut.vocabulary(rank).size() <= tokens);
        }
      }
    }
  }
}

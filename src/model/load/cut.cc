#include "model/load/cut.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace lockstep {
namespace {

static_assert(kHeadGroupsMax <= kLeavesMax);

// Where each rank's leaves begin, and the end of the last rank's: units of equal leaves, cut as
// close to the shares as whole units allow.
std::vector<int> begins_of(int units, int leaves_per_unit, std::span<const double> shares) {
  double total = 0;
  for (double share : shares) total += share;
  std::vector<int> begins{0};
  double sum = 0;
  for (size_t rank = 0; rank + 1 < shares.size(); ++rank) {
    sum += shares[rank];
    begins.push_back(static_cast<int>(std::floor(units * (sum / total) + 0.5)) * leaves_per_unit);
  }
  begins.push_back(units * leaves_per_unit);
  return begins;
}

LeafShares share_out(int units, int leaves_per_unit, std::span<const double> shares) {
  return LeafShares(begins_of(units, leaves_per_unit, shares));
}

// The fewest of these units in a leaf that give at most kLeavesMax equal leaves.
int units_in_leaf(int units) {
  int in_leaf = 1;
  while (units % in_leaf != 0 || units / in_leaf > kLeavesMax) ++in_leaf;
  return in_leaf;
}

// The fewest whole heads in a leaf that give at most kLeavesMax leaves and do not straddle
// key/value heads. With compressed attention a leaf is a group of heads.
int heads_in_leaf(const ModelConfig& config) {
  if (config.compressed) return config.heads / config.compressed->groups;
  const int group = config.heads_per_kv();
  for (int heads = 1; heads <= group; ++heads) {
    if (group % heads == 0 && config.heads / heads <= kLeavesMax) return heads;
  }
  return group * units_in_leaf(config.kv_heads);
}

// The largest alignment that leaves of `columns` columns can have, up to `wanted`.
int fitting_alignment(int columns, int wanted) {
  while (wanted > kAlignmentMin && columns / wanted < kAlignedLeavesMin) wanted /= 2;
  return std::max(1, wanted);
}

int ffn_leaf_count(int columns, int alignment) {
  const int most = std::max(1, columns / std::max(kFfnLeafColumnsMin, alignment));
  return std::min(kLeavesMax, static_cast<int>(std::bit_floor(static_cast<unsigned>(most))));
}

// Where leaf `leaf` of `leaves` nearly equal ones begins.
int boundary(int leaf, int leaves, int size, int alignment = 1) {
  const int64_t units = (size + alignment - 1) / alignment;
  return static_cast<int>(std::min<int64_t>(size, leaf * units / leaves * alignment));
}

// Sums of leaves are added the way a binary counter carries: after leaf i of a subtree, once for
// each trailing one of i.
template <class LeafColumns>
std::vector<LeafStep> steps_for(std::span<const TreeNode> nodes, LeafColumns columns) {
  std::vector<LeafStep> steps;
  for (const TreeNode node : nodes) {
    const int first = node.index << node.level, count = 1 << node.level;
    for (int i = 0; i < count; ++i) {
      steps.push_back({.columns = columns(first + i),
                       .merges = std::countr_one(static_cast<unsigned>(i)),
                       .ends_subtree = i + 1 == count});
    }
  }
  return steps;
}

// The range of `size` columns, cut into nearly equal leaves, that `rank` has.
Range columns_of(const LeafShares& shares, int size, int alignment, int rank) {
  return {boundary(shares.begin(rank), shares.leaf_count(), size, alignment),
          boundary(shares.end(rank), shares.leaf_count(), size, alignment)};
}

int latent_leaf_count(int rows) {
  return (rows + kLatentLeafRows - 1) / kLatentLeafRows;
}

// The range of `rows` rows, whose first leaf is `first`, that a rank has.
Range latent_rows(std::span<const int> begins, int rank, int first, int rows) {
  const auto row_of = [&](int leaf) {
    return std::clamp((leaf - first) * kLatentLeafRows, 0, rows);
  };
  const auto r = static_cast<size_t>(rank);
  return {row_of(begins[r]), row_of(begins[r + 1])};
}

std::vector<LeafStep> column_steps(const LeafShares& shares, int size, int alignment, int rank) {
  const int leaves = shares.leaf_count();
  return steps_for(shares.nodes(rank), [&](int leaf) {
    return boundary(leaf + 1, leaves, size, alignment) - boundary(leaf, leaves, size, alignment);
  });
}

}  // namespace

Result<Cut> Cut::make(const ModelConfig& config, std::span<const double> shares,
                      const CutOptions& options) {
  for (double share : shares) {
    if (!(share > 0) || !std::isfinite(share)) {
      return Error{ErrorCode::kInvalidArgument, "each share must be a positive number"};
    }
  }
  if (shares.empty()) return Error{ErrorCode::kInvalidArgument, "there must be at least one rank"};
  const int per_leaf = heads_in_leaf(config);
  const int leaves = config.heads / per_leaf;
  // Whole key/value groups as long as every rank can have one; beyond that, their keys and values
  // are replicated.
  const bool whole_groups =
      static_cast<int>(shares.size()) <= config.kv_heads && leaves % config.kv_heads == 0;
  const int head_units = whole_groups ? config.kv_heads : leaves;
  const int vocabulary_leaves = std::min(kLeavesMax, config.vocab_size);
  const CutAlignment alignment = {
      .ffn = fitting_alignment(config.ffn, options.alignment.ffn),
      .experts = fitting_alignment(config.experts.ffn, options.alignment.experts)};
  const int delta_heads = config.delta ? config.delta->key_heads : 1;
  const LatentConfig& latent = config.latent;
  const int latent_leaves =
      latent_leaf_count(latent.query_rank) + latent_leaf_count(latent.kv_rank + latent.rope);
  return Cut(
      config, {alignment, options.cuts_latents && latent.rows() > 0},
      {.heads = share_out(head_units, leaves / head_units, shares),
       .ffn = share_out(ffn_leaf_count(config.ffn, alignment.ffn), 1, shares),
       .experts = share_out(ffn_leaf_count(config.experts.ffn, alignment.experts), 1, shares),
       .vocabulary = share_out(vocabulary_leaves, 1, shares),
       .delta = share_out(delta_heads / units_in_leaf(delta_heads), 1, shares),
       .latent_begins = begins_of(latent_leaves, 1, shares)});
}

Cut::Cut(const ModelConfig& config, const CutOptions& options, Shares shares)
    : heads_per_kv_(config.heads_per_kv()),
      heads_per_leaf_(config.heads / shares.heads.leaf_count()),
      delta_heads_per_leaf_(config.delta ? config.delta->key_heads / shares.delta.leaf_count() : 0),
      ffn_columns_(config.ffn),
      expert_columns_(config.experts.ffn),
      shared_columns_(config.experts.shared_ffn),
      vocab_size_(config.vocab_size),
      query_latent_rows_(config.latent.query_rank),
      kv_latent_rows_(config.latent.kv_rank + config.latent.rope),
      cuts_latents_(options.cuts_latents),
      alignment_(options.alignment),
      heads_(std::move(shares.heads)),
      ffn_(std::move(shares.ffn)),
      experts_(std::move(shares.experts)),
      vocabulary_(std::move(shares.vocabulary)),
      delta_(std::move(shares.delta)),
      latent_begins_(std::move(shares.latent_begins)) {}

Range Cut::heads(int rank) const {
  return {heads_.begin(rank) * heads_per_leaf_, heads_.end(rank) * heads_per_leaf_};
}

Range Cut::kv_heads(int rank, int all) const {
  const Range own = heads(rank);
  if (own.size() == 0 || all == 0) return {};
  const int heads_per_kv = head_count() / all;
  return {own.begin / heads_per_kv, (own.end + heads_per_kv - 1) / heads_per_kv};
}

Range Cut::first_kv_heads(int rank) const {
  const Range own = heads(rank);
  const auto first_from = [this](int head) { return (head + heads_per_kv_ - 1) / heads_per_kv_; };
  return {first_from(own.begin), first_from(own.end)};
}

Range Cut::ffn(int rank, int all) const {
  return columns_of(ffn_, all, alignment_.ffn, rank);
}

Range Cut::expert_ffn(int rank) const {
  return columns_of(experts_, expert_columns_, alignment_.experts, rank);
}

Range Cut::shared_ffn(int rank) const {
  return columns_of(experts_, shared_columns_, alignment_.experts, rank);
}

Range Cut::vocabulary(int rank) const {
  return table_rows(rank, vocab_size_);
}

Range Cut::table_rows(int rank, int rows) const {
  return columns_of(vocabulary_, rows, 1, rank);
}

Range Cut::delta_heads(int rank) const {
  return {delta_.begin(rank) * delta_heads_per_leaf_, delta_.end(rank) * delta_heads_per_leaf_};
}

Range Cut::query_latent(int rank) const {
  if (!cuts_latents_) return {0, query_latent_rows_};
  return latent_rows(latent_begins_, rank, 0, query_latent_rows_);
}

Range Cut::kv_latent(int rank) const {
  if (!cuts_latents_) return {0, kv_latent_rows_};
  return latent_rows(latent_begins_, rank, latent_leaf_count(query_latent_rows_), kv_latent_rows_);
}

std::vector<LeafStep> Cut::head_steps(int rank, int value_dim) const {
  return steps_for(heads_.nodes(rank), [&](int) { return heads_per_leaf_ * value_dim; });
}

std::vector<LeafStep> Cut::delta_steps(int rank, int columns_of_head) const {
  return steps_for(delta_.nodes(rank),
                   [&](int) { return delta_heads_per_leaf_ * columns_of_head; });
}

std::vector<LeafStep> Cut::ffn_steps(int rank, int all) const {
  return column_steps(ffn_, all, alignment_.ffn, rank);
}

std::vector<LeafStep> Cut::expert_steps(int rank) const {
  return column_steps(experts_, expert_columns_, alignment_.experts, rank);
}

std::vector<LeafStep> Cut::shared_steps(int rank) const {
  return column_steps(experts_, shared_columns_, alignment_.experts, rank);
}

}  // namespace lockstep

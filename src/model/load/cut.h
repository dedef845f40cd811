// Cut: how a model is divided over the ranks of a group. Each cut dimension has a fixed number of
// leaves that depends only on the model (the pieces over which sums are taken, see
// docs/internals/one-answer.md); shares decide which rank owns which leaves. Pure arithmetic: the
// loader, the forward pass, the planner and tests use it.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "collective/group/group.h"
#include "kernels/kernels.h"
#include "model/config/config.h"

namespace lockstep {

inline constexpr int kLeavesMax = 64;
// Feed-forward columns are not cut finer than this.
inline constexpr int kFfnLeafColumnsMin = 16;

// Rows of the projections to the latents are not cut finer than this, one tile of packed weights.
// No sums run over these leaves.
inline constexpr int kLatentLeafRows = 16;

// Leaf boundaries are multiples of these, so that groups of quantised columns stay whole; for the
// feed-forward columns of dense layers and of experts.
struct CutAlignment {
  int ffn = 1;
  int experts = 1;
};
// With fewer aligned leaves than this the alignment is reduced, down to kAlignmentMin.
inline constexpr int kAlignedLeavesMin = 16;
inline constexpr int kAlignmentMin = 32;

struct CutOptions {
  CutAlignment alignment{};
  bool cuts_latents = false;  // see model/load/latent_cut.h; only with latent attention
};

struct Range {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
};

class Cut {
 public:
  // One share per rank, on any positive scale (3:1), else kInvalidArgument.
  static Result<Cut> make(const ModelConfig& config, std::span<const double> shares,
                          const CutOptions& options = {});

  int rank_count() const { return heads_.rank_count(); }
  int head_count() const { return heads_per_leaf_ * heads_.leaf_count(); }
  Range heads(int rank) const;  // query heads
  // Key/value heads that its query heads use: of the model's, or of `all` in a layer with fewer.
  Range kv_heads(int rank) const { return kv_heads(rank, head_count() / heads_per_kv_); }
  Range kv_heads(int rank, int all) const;
  Range first_kv_heads(int rank) const;  // those whose first query head it has: each has one rank
  // Feed-forward columns: of the model's, or of `all` in a layer with more.
  Range ffn(int rank) const { return ffn(rank, ffn_columns_); }
  Range ffn(int rank, int all) const;
  Range expert_ffn(int rank) const;  // of each expert
  Range shared_ffn(int rank) const;  // of the shared experts, cut like the others
  Range vocabulary(int rank) const;
  Range table_rows(int rank, int rows) const;  // of a table that is cut like the vocabulary
  // Key heads of the delta rule, each with its value heads.
  Range delta_heads(int rank) const;
  int delta_head_count() const { return delta_heads_per_leaf_ * delta_.leaf_count(); }
  // Rows of the projections to the latents: the rank's if cuts_latents(), else all. The leaves of
  // the query's and of the keys' and values' latent are shared out as one list.
  bool cuts_latents() const { return cuts_latents_; }
  Range query_latent(int rank) const;
  Range kv_latent(int rank) const;

  const LeafShares& head_shares() const { return heads_; }
  const LeafShares& delta_shares() const { return delta_; }
  const LeafShares& ffn_shares() const { return ffn_; }
  const LeafShares& expert_shares() const { return experts_; }

  // The kernels' steps for a rank's columns of a matrix whose products are summed over ranks.
  std::vector<LeafStep> head_steps(int rank, int value_dim) const;
  std::vector<LeafStep> delta_steps(int rank, int columns_of_head) const;
  std::vector<LeafStep> ffn_steps(int rank) const { return ffn_steps(rank, ffn_columns_); }
  std::vector<LeafStep> ffn_steps(int rank, int all) const;
  std::vector<LeafStep> expert_steps(int rank) const;
  std::vector<LeafStep> shared_steps(int rank) const;

 private:
  struct Shares {
    LeafShares heads, ffn, experts, vocabulary, delta;
    std::vector<int> latent_begins;
  };
  Cut(const ModelConfig& config, const CutOptions& options, Shares shares);

  int heads_per_kv_;
  int heads_per_leaf_;
  int delta_heads_per_leaf_;
  int ffn_columns_;
  int expert_columns_;
  int shared_columns_;
  int vocab_size_;
  int query_latent_rows_;
  int kv_latent_rows_;
  bool cuts_latents_;
  CutAlignment alignment_;
  LeafShares heads_;
  LeafShares ffn_;
  LeafShares experts_;
  LeafShares vocabulary_;
  LeafShares delta_;
  std::vector<int> latent_begins_;  // (ranks + 1), in leaves
};

}  // namespace lockstep

// Group: the ranks that share one model, as one of them sees it, and the exchanges between them. One thread uses a
// group. Every exchange has a deadline and ends early when `cancelled` is set; after an error the group is broken
// and must be formed anew with a new epoch. Nothing allocates after construction but scratch that grows to its
// largest use. Ranks must call the same exchanges in the same order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "collective/sum_tree.h"
#include "kernels/kernels.h"
#include "transport/link.h"

namespace lockstep {

// How the leaves of one cut dimension lie on the ranks: rank r owns leaves [begins[r], begins[r + 1]).
class LeafShares {
 public:
  explicit LeafShares(std::vector<int> begins);

  int leaf_count() const { return begins_.back(); }
  int begin(int rank) const { return begins_[static_cast<size_t>(rank)]; }
  int end(int rank) const { return begins_[static_cast<size_t>(rank) + 1]; }
  // The complete subtrees of a rank, left to right; none if it has no leaves.
  std::span<const TreeNode> nodes(int rank) const { return nodes_[static_cast<size_t>(rank)]; }
  int node_count() const { return node_count_; }  // of all ranks

 private:
  std::vector<int> begins_;
  std::vector<std::vector<TreeNode>> nodes_;
  int node_count_ = 0;
};

class Group {
 public:
  struct Options {
    int rank = 0;
    std::vector<std::unique_ptr<Link>> links;  // links[r] reaches rank r; links[rank] is null
    std::chrono::milliseconds timeout{10'000};
    const std::atomic<bool>* cancelled = nullptr;
    Progress* progress = nullptr;  // told for which rank we wait
    const KernelTable* kernels = nullptr;
  };
  explicit Group(Options options);

  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.links.size()); }

  // `own` holds this rank's subtree sums one after the other, each sum.size() floats; every rank ends with the same
  // bits in `sum`, whatever the number of ranks and their shares (collective/sum_tree.h). One hop: all to all.
  Status all_reduce(const LeafShares& shares, std::span<const float> own, std::span<float> sum);

  // Rank `root`'s bytes on every rank. Receivers get them in `data`, which is resized (at most `bytes_max`).
  Status broadcast(int root, std::vector<std::byte>& data, size_t bytes_max);

  // Every rank ends with every rank's bytes: parts[r] is rank r's, with the sizes known to all beforehand;
  // parts[rank] is read, the others are written.
  Status all_gather(std::span<const std::span<std::byte>> parts);

  // As all_gather, but only `root` receives.
  Status gather(int root, std::span<const std::span<std::byte>> parts);

 private:
  Options options_;
  std::vector<float> scratch_;
  std::vector<PartialSum> parts_;
};

}  // namespace lockstep

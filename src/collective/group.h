// Group: the ranks that share one model, as one of them sees it, and the exchanges between them.
// One thread uses a group. Every exchange has a deadline and ends early when `cancelled` is set;
// after an error the group is broken and must be formed anew with a new epoch. Nothing allocates
// after construction but scratch that grows to its largest use. Ranks must call the same exchanges
// in the same order.
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

// How the leaves of one cut dimension lie on the ranks: rank r owns leaves [begins[r], begins[r +
// 1]).
class LeafShares {
 public:
  explicit LeafShares(std::vector<int> begins);

  int rank_count() const { return static_cast<int>(nodes_.size()); }
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

  // Returns once rank `root`'s next message is there, with no deadline: how a follower idles
  // between requests. It polls for about a millisecond (steps that follow each other lose nothing)
  // and then sleeps. Ends early with kCancelled or the error of the link.
  Status wait_for(int root);

  // `own` holds this rank's subtree sums one after the other, each sum.size() floats; every rank
  // ends with the same bits in `sum`, whatever the number of ranks and their shares
  // (collective/sum_tree.h). One hop: all to all.
  Status all_reduce(const LeafShares& shares, std::span<const float> own, std::span<float> sum);

  // Rank `root`'s bytes on every rank. Receivers get them in `data`, which is resized (at most
  // `bytes_max`).
  Status broadcast(int root, std::vector<std::byte>& data, size_t bytes_max);

  // Every rank ends with every rank's bytes: parts[r] is rank r's, with the sizes known to all
  // beforehand; parts[rank] is read, the others are written.
  Status all_gather(std::span<const std::span<std::byte>> parts);

  // As all_gather, but only `root` receives.
  Status gather(int root, std::span<const std::span<std::byte>> parts);

 private:
  // What is left to move between this rank and one peer; goes in pieces.
  struct Transfer {
    std::span<const std::byte> out;
    std::span<std::byte> in;
  };
  Status exchange();
  Result<bool> move_pieces(int peer);
  Status flush();
  Status send_size_and_data(std::span<const std::byte> data);
  Status receive_size_and_data(int root, std::vector<std::byte>& data, size_t bytes_max);
  Status idle_until_message(Link& link);

  struct Reduction;  // one all_reduce
  Status reduce(Reduction& reduction);
  bool post_pieces(Reduction& reduction);
  Result<int> find_lacking(const Reduction& reduction);
  void add_piece(const Reduction& reduction);

  bool is_peer(int rank) const { return rank != options_.rank; }
  Link& link(int rank) { return *options_.links[static_cast<size_t>(rank)]; }
  // Remembers the first error: the group is broken from then on.
  Status finish(Status status);

  Options options_;
  Status state_ = Ok{};
  std::vector<Transfer> transfers_;                 // (ranks)
  std::vector<size_t> posted_;                      // (ranks) pieces of an all_reduce given to each
  std::vector<std::span<const std::byte>> peeked_;  // (ranks) the piece that each has sent
  std::vector<TreePart> parts_;
  TreeAdder adder_;
};

}  // namespace lockstep

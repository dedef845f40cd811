// Group: the ranks that share one model, as one of them sees it, and the exchanges between them.
// One thread uses a group. Every exchange has a deadline and ends early when `cancelled` is set;
// after an error the group is broken and must be formed anew with a new epoch. Nothing allocates
// after the first use of a plan but scratch that grows to its largest use. Ranks must call the same
// exchanges in the same order. Not every two ranks need a link: others relay.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collective/exchange.h"
#include "collective/group_options.h"
#include "collective/group_plans.h"
#include "collective/leaf_shares.h"
#include "collective/sum_tree.h"

namespace lockstep {

class Group {
 public:
  using Options = GroupOptions;

  // With more ranks the pairs would take longer than a better choice saves; they use usual costs.
  static constexpr int kMeasuredRanksMax = 16;

  // The ranks agree over their links on the size of pieces, on who is joined with whom, and on what
  // the links cost, which up to kMeasuredRanksMax ranks measure, a few ms for each pair. Every rank
  // must call it. kInvalidArgument names a rank that no links lead to.
  static Result<Group> form(Options options);

  // Without a word to other ranks: all values of `options` are right already.
  explicit Group(Options options);

  // Takes the group apart; it must not be used again.
  Options release() &&;

  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.links.size()); }
  const LinkGraph& graph() const { return plans_->graph(); }
  // (ranks, ranks), the same on every rank; empty: not measured.
  std::span<const LinkCost> link_costs() const { return options_.link_costs; }
  // False if sums of many rows travel in a way whose bits depend on the shares.
  bool is_exact() const { return options_.wire == Wire::kF32; }
  size_t piece_bytes() const { return options_.piece_bytes; }
  // Null for the own rank and for one without a link. For measurements between two exchanges.
  Link* link_to(int rank) { return options_.links[static_cast<size_t>(rank)].get(); }
  // Which way a sum of `count` floats goes.
  SumAlgorithm algorithm(const LeafShares& shares, size_t count);

  // Returns once rank `root`'s next broadcast is there, with no deadline: how a follower idles
  // between requests. It polls for about a millisecond (steps that follow each other lose nothing)
  // and then sleeps. Ends early with kCancelled or the error of the link that it will come by.
  Status wait_for(int root);

  // `own` holds this rank's subtree sums one after the other, each sum.size() floats, which stand
  // for `rows` rows; every rank ends with the same bits in `sum`, whatever the number of ranks,
  // their shares and links (collective/sum_tree.h). Only a `wire` other than kF32 makes the bits
  // depend on the shares, where there are rows enough.
  Status all_reduce(const LeafShares& shares, std::span<const float> own, std::span<float> sum,
                    int rows = 1);

  // The same in steps, so that the sum travels while this thread does something else: `shares`,
  // `own` and `sum` stay as they are until finish_sum() has returned. One sum is under way at a
  // time: beginning one finishes the one before. No other exchange may come between.
  Status begin_sum(const LeafShares& shares, std::span<const float> own, std::span<float> sum,
                   int rows = 1);
  // Moves what can move without waiting; nothing to do if no sum is under way. An error is that of
  // finish_sum() too.
  Status poll_sum();
  Status finish_sum();

  // Rank `root`'s bytes on every rank. Receivers get them in `data`, which is resized (at most
  // `bytes_max`).
  Status broadcast(int root, std::vector<std::byte>& data, size_t bytes_max);

  // Every rank ends with every rank's bytes: parts[r] is rank r's, with the sizes known to all
  // beforehand; parts[rank] is read, the others are written.
  Status all_gather(std::span<const std::span<std::byte>> parts);

  // As all_gather, but only `root` receives. Other ranks need parts[r] where they carry it; what
  // they only relay leaves its bytes there. The other parts are not looked at.
  Status gather(int root, std::span<const std::span<std::byte>> parts);
  bool carries(int root, int source) const { return plans_->carries(root, source); }

 private:
  Status move_parts(const ExchangePlan& plan, std::span<const std::span<std::byte>> parts,
                    int gathering_root);
  Status send_length(const ExchangePlan& plan, std::span<const std::byte> first_frame);
  Status receive_length(int root, const ExchangePlan& plan, std::vector<std::byte>& data,
                        size_t bytes_max);
  Status move_rest(const ExchangePlan& plan, std::span<std::byte> data);

  // The sum that is under way.
  struct Reduction {
    const LeafShares* shares = nullptr;
    std::span<const float> own;
    std::span<float> sum;
    const GroupPlans::Sum* plan = nullptr;  // null: in one hop
    Wire wire = Wire::kF32;
    // Of one hop: elements of a piece, the same on every rank (the last piece may be shorter), how
    // many pieces there are and how many are done.
    size_t piece_floats = 0;
    size_t piece_count = 0;
    size_t added = 0;

    size_t begin(size_t piece) const { return piece * piece_floats; }
    size_t length(size_t piece) const { return std::min(piece_floats, sum.size() - begin(piece)); }
    size_t frame_bytes(int rank, size_t piece) const {
      return shares->nodes(rank).size() * length(piece) * sizeof(float);
    }
  };
  const GroupPlans::Sum* plan_of(const LeafShares& shares, size_t count, Wire wire);

  void begin_in_one_hop(Reduction& reduction);
  Status poll_in_one_hop(Reduction& reduction);
  Status finish_in_one_hop(Reduction& reduction);
  // The peers that the current piece waits for, if nothing has moved.
  struct Move {
    bool has_moved = false;
    PeerSet lacking = 0;
  };
  Result<Move> move(Reduction& reduction);
  bool post_pieces(Reduction& reduction);
  Result<PeerSet> find_lacking(const Reduction& reduction);
  void add_piece(const Reduction& reduction);
  Status flush();

  void begin_by_plan(const Reduction& reduction);
  Status finish_by_plan(const Reduction& reduction);

  Status measure_links();
  Result<LinkCost> measure_link(int peer);
  Status answer_measure(int peer);

  size_t window_pieces() const { return std::max<size_t>(1, kPieceBytes / options_.piece_bytes); }
  bool is_peer(int rank) const { return rank != options_.rank; }
  Link& link(int rank) { return *options_.links[static_cast<size_t>(rank)]; }
  // Remembers the first error: the group is broken from then on.
  Status finish(Status status);

  Options options_;
  Status state_ = Ok{};
  std::unique_ptr<GroupPlans> plans_;
  Exchange exchange_;
  std::optional<Reduction> reduction_;
  std::vector<std::byte*> memory_;  // (slots) of the exchange at hand
  std::vector<size_t> lengths_;     // (parts)
  std::vector<std::byte> first_frame_;
  std::vector<float> scratch_;
  std::vector<size_t> posted_;  // (ranks) pieces of a sum in one hop that were given to each
  std::vector<std::span<const std::byte>> peeked_;  // (ranks) the piece that each has sent
  std::vector<TreePart> parts_;
  TreeAdder adder_;
};

}  // namespace lockstep

// Group: one rank's view of the ranks that share a model, and the exchanges between them. One
// thread uses a group. Every exchange has a deadline and ends early when `cancelled` is set; after
// an error the group is broken and must be formed again with a new epoch. After the first use of a
// plan nothing is allocated except scratch that grows to its largest use. All ranks must call the
// same exchanges in the same order. Ranks without a direct link are reached through others.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collective/plan/group_options.h"
#include "collective/plan/leaf_shares.h"
#include "collective/plan/sum_tree.h"
#include "collective/sums/exchange.h"
#include "collective/sums/group_plans.h"

namespace lockstep {

// Two ranks that have a link, low < high.
struct RankPair {
  int32_t low = 0;
  int32_t high = 0;

  bool operator==(const RankPair&) const = default;
};

class Group {
 public:
  using Options = GroupOptions;

  // With more ranks, measuring the pairs costs more than a better choice saves: assume usual costs.
  static constexpr int kMeasuredRanksMax = 16;

  // The ranks agree over their links on the piece size, on which ranks are linked, and on link
  // costs, which are measured for up to kMeasuredRanksMax ranks (a few ms per pair). Every rank
  // must call it. kInvalidArgument names a rank that cannot be reached.
  static Result<Group> form(Options options);

  // Without contacting other ranks: all values of `options` must already be right.
  explicit Group(Options options);

  // Takes the group apart; it must not be used again.
  Options release() &&;

  int rank() const { return options_.rank; }
  int size() const { return static_cast<int>(options_.links.size()); }
  const LinkGraph& graph() const { return plans_->graph(); }
  // (ranks, ranks), the same on every rank; empty: not measured.
  std::span<const LinkCost> link_costs() const { return options_.link_costs; }
  // False if sums of many rows use a wire format whose bits depend on the shares.
  bool is_exact() const { return options_.wire == Wire::kF32; }
  size_t piece_bytes() const { return options_.piece_bytes; }
  // Null for this rank and for a rank without a link. For measurements between two exchanges.
  Link* link_to(int rank) { return options_.links[static_cast<size_t>(rank)].get(); }
  // Measures the link between two ranks again, between two exchanges; the other ranks return at
  // once. Rank `low` writes the result to its meter. The costs that plans use stay as they were.
  Status measure_again(RankPair pair);
  // Sums, broadcasts and gathers since it was formed; a group of one rank has none.
  uint64_t exchange_count() const { return exchange_count_; }
  // Null: its links are not metered.
  const std::shared_ptr<LinkMeters>& meters() const { return options_.meters; }
  // The algorithm for a sum of `count` floats.
  SumAlgorithm algorithm(const LeafShares& shares, size_t count);

  // Returns once rank `root`'s next broadcast has arrived, with no deadline: how a follower idles
  // between requests. It polls for about a millisecond (back-to-back steps lose nothing) and then
  // sleeps. Ends early with kCancelled or the error of the link it waits on.
  Status wait_for(int root);

  // `own` holds this rank's subtree sums one after the other, each sum.size() floats for `rows`
  // rows. Every rank ends with the same bits in `sum`, whatever the number of ranks, their shares
  // and links (collective/plan/sum_tree.h). Only a `wire` other than kF32, used with enough rows,
  // makes the bits depend on the shares.
  Status all_reduce(const LeafShares& shares, std::span<const float> own, std::span<float> sum,
                    int rows = 1);

  // The same in steps, to overlap the sum with other work of this thread: `shares`, `own` and `sum`
  // must stay unchanged until finish_sum() has returned. One sum is in flight at a time: beginning
  // one finishes the previous one. No other exchange may come between.
  Status begin_sum(const LeafShares& shares, std::span<const float> own, std::span<float> sum,
                   int rows = 1);
  // Moves what can move without waiting; does nothing if no sum is in flight. finish_sum() returns
  // the same error.
  Status poll_sum();
  Status finish_sum();

  // Rank `root`'s bytes on every rank. Receivers get them in `data`, which is resized (at most
  // `bytes_max`).
  Status broadcast(int root, std::vector<std::byte>& data, size_t bytes_max);

  // Every rank ends with every rank's bytes: parts[r] is rank r's; all ranks know the sizes
  // beforehand. parts[rank] is read, the others are written.
  Status all_gather(std::span<const std::span<std::byte>> parts);

  // Like all_gather, but only `root` receives. Other ranks need parts[r] only where carries() is
  // true; relayed bytes are left there. The other parts are ignored.
  Status gather(int root, std::span<const std::span<std::byte>> parts);
  bool carries(int root, int source) const { return plans_->carries(root, source); }

 private:
  Status move_parts(const ExchangePlan& plan, std::span<const std::span<std::byte>> parts,
                    int gathering_root);
  Status send_length(const ExchangePlan& plan, std::span<const std::byte> first_frame);
  Status receive_length(int root, const ExchangePlan& plan, std::vector<std::byte>& data,
                        size_t bytes_max);
  Status move_rest(const ExchangePlan& plan, std::span<std::byte> data);

  // The sum in flight.
  struct Reduction {
    const LeafShares* shares = nullptr;
    std::span<const float> own;
    std::span<float> sum;
    const GroupPlans::Sum* plan = nullptr;  // null: in one hop
    Wire wire = Wire::kF32;
    // For one hop: elements per piece, the same on every rank (the last piece may be shorter), the
    // number of pieces and how many are done.
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
  void count_exchange() { exchange_count_ += size() > 1 ? 1 : 0; }
  // Remembers the first error: the group is broken from then on.
  Status finish(Status status);

  Options options_;
  Status state_ = Ok{};
  uint64_t exchange_count_ = 0;
  std::unique_ptr<GroupPlans> plans_;
  Exchange exchange_;
  std::optional<Reduction> reduction_;
  std::vector<std::byte*> memory_;  // (slots) of the current exchange
  std::vector<size_t> lengths_;     // (parts)
  std::vector<std::byte> first_frame_;
  std::vector<float> scratch_;
  std::vector<size_t> posted_;  // (ranks) pieces of a one-hop sum given to each link
  std::vector<std::span<const std::byte>> peeked_;  // (ranks) the piece that each has sent
  std::vector<TreePart> parts_;
  TreeAdder adder_;
};

// About how long measure_again() takes on a link with this cost.
std::chrono::nanoseconds measuring_time(const LinkCost& cost);

}  // namespace lockstep

// The link costs of a new group, for the choice of an algorithm and for the group's status. Each
// pair of linked ranks plays ping-pong, pair after pair in one order, so that pairs with a rank in
// common do not disturb each other; then every rank gets the figures of all. The rank that begins
// decides the number of messages and their length. Later one pair after the other is measured
// again, for the status alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "base/percentile.h"
#include "collective/group/group.h"
#include "collective/sums/peer_wait.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kShortMessageBytes = 64;
constexpr size_t kMediumBytes = size_t{16} * 1024;
constexpr size_t kShortRounds = 64;
constexpr size_t kLongRounds = 4;
// A slow link gets fewer rounds, and no piece-sized message if that would take longer. The minimum
// of too few rounds measures a busy processor, not the link: with one or two of 1 ms each, ranks on
// two busy cores chose a tree, which took twice as long as one hop.
constexpr double kBudgetNs = 3e6;
constexpr size_t kRoundsMin = 4;
constexpr std::byte kEnd{1};  // first byte of the last message, which gets no answer

Status send_frame(const GroupOptions& options, int peer, size_t bytes, std::byte first = {}) {
  Link& link = *options.links[static_cast<size_t>(peer)];
  PeerWait wait(options);
  auto frame = link.acquire(bytes);
  while (frame.empty()) {
    link.flush();
    TRY(wait.pause(0, peer_bit(peer)));
    frame = link.acquire(bytes);
  }
  std::fill(frame.begin(), frame.end(), std::byte{0});
  frame[0] = first;
  link.post();
  while (!link.flush()) TRY(wait.pause(0, peer_bit(peer)));
  return Ok{};
}

// The first byte of the next frame.
Result<std::byte> take_frame(const GroupOptions& options, int peer) {
  Link& link = *options.links[static_cast<size_t>(peer)];
  PeerWait wait(options);
  while (link.peek().empty()) TRY(wait.pause(peer));
  const std::byte first = link.peek()[0];
  link.release();
  return first;
}

// Ascending round-trip times in ns of messages of `bytes` bytes with short answers; at least one.
Result<std::vector<double>> round_trips(const GroupOptions& options, int peer, size_t bytes,
                                        size_t rounds_max) {
  std::vector<double> times_ns;
  double total_ns = 0;
  while (times_ns.size() < rounds_max && (total_ns < kBudgetNs || times_ns.size() < kRoundsMin)) {
    const auto start = Clock::now();
    TRY(send_frame(options, peer, bytes));
    (void)TRY(take_frame(options, peer));
    const std::chrono::duration<double, std::nano> time = Clock::now() - start;
    times_ns.push_back(time.count());
    total_ns += time.count();
  }
  std::sort(times_ns.begin(), times_ns.end());
  return times_ns;
}

uint32_t one_way_ns(const std::vector<double>& ascending_ns, size_t percent) {
  const double ns = at_percent(ascending_ns, percent) / 2;
  return static_cast<uint32_t>(std::clamp(ns, 1.0, 4e9));
}

}  // namespace

Status Group::measure_links() {
  if (size() < 2 || size() > kMeasuredRanksMax) return Ok{};
  const auto ranks = static_cast<size_t>(size());
  std::vector<LinkCost> costs(ranks * ranks);
  for (int low = 0; low < size(); ++low) {
    for (int high = low + 1; high < size(); ++high) {
      if (!graph().has(low, high)) continue;
      if (rank() == low) {
        costs[static_cast<size_t>(low) * ranks + static_cast<size_t>(high)] =
            TRY(measure_link(high));
      }
      if (rank() == high) TRY(answer_measure(low));
    }
  }
  std::vector<std::span<std::byte>> rows;
  for (size_t row = 0; row < ranks; ++row) {
    rows.push_back(std::as_writable_bytes(std::span(costs).subspan(row * ranks, ranks)));
  }
  TRY(all_gather(rows));
  for (size_t low = 0; low < ranks; ++low) {
    for (size_t high = low + 1; high < ranks; ++high) {
      LinkCost& cost = costs[low * ranks + high];
      cost.bytes_per_us = std::max<uint32_t>(cost.bytes_per_us, 1);
      costs[high * ranks + low] = cost;
    }
  }
  options_.link_costs = std::move(costs);
  plans_ = std::make_unique<GroupPlans>(options_, options_.graph);
  return Ok{};
}

Status Group::measure_again(RankPair pair) {
  if (pair.low < 0 || pair.low >= pair.high || pair.high >= size() ||
      !graph().has(pair.low, pair.high)) {
    return finish(Error{ErrorCode::kCorrupt, "a link that does not exist is to be measured"});
  }
  if (rank() == pair.high) return finish(answer_measure(pair.low));
  if (rank() != pair.low) return Ok{};
  const Result<LinkCost> cost = measure_link(pair.high);
  if (!cost.ok()) return finish(cost.error());
  if (options_.meters) {
    (*options_.meters)[static_cast<size_t>(options_.name_of(pair.high))].measured(
        cost.value().p50_ns, cost.value().p99_ns, cost.value().bytes_per_us);
  }
  return Ok{};
}

std::chrono::nanoseconds measuring_time(const LinkCost& cost) {
  const auto rounds_ns = [](double round_ns, size_t rounds_max) {
    const double rounds = std::ceil(kBudgetNs / round_ns);
    return round_ns * std::clamp(rounds, double{kRoundsMin}, static_cast<double>(rounds_max));
  };
  const double short_ns = 2.0 * std::max<uint32_t>(cost.p50_ns, 1);
  const double long_ns = short_ns + double{kPieceBytes} * 1e3 / cost.bytes_per_us;
  return std::chrono::nanoseconds(static_cast<int64_t>(
      rounds_ns(short_ns, kShortRounds) + kLongRounds * std::min(long_ns, kBudgetNs + short_ns)));
}

Result<LinkCost> Group::measure_link(int peer) {
  const auto short_ns = TRY(round_trips(options_, peer, kShortMessageBytes, kShortRounds));
  size_t bytes = std::min(kMediumBytes, options_.piece_bytes);
  auto long_ns = TRY(round_trips(options_, peer, bytes, kLongRounds));
  const double pieces = static_cast<double>(options_.piece_bytes) / static_cast<double>(bytes);
  if (long_ns.front() * pieces < kBudgetNs) {
    bytes = options_.piece_bytes;
    long_ns = TRY(round_trips(options_, peer, bytes, kLongRounds));
  }
  TRY(send_frame(options_, peer, kShortMessageBytes, kEnd));
  const double bytes_ns = std::max(long_ns.front() - short_ns.front(), 1.0);
  const double bytes_per_us = static_cast<double>(bytes) * 1e3 / bytes_ns;
  return LinkCost{.latency_ns = one_way_ns(short_ns, 0),
                  .bytes_per_us = static_cast<uint32_t>(std::clamp(bytes_per_us, 1.0, 1e6)),
                  .p50_ns = one_way_ns(short_ns, 50),
                  .p99_ns = one_way_ns(short_ns, 99)};
}

Status Group::answer_measure(int peer) {
  while (TRY(take_frame(options_, peer)) != kEnd) {
    TRY(send_frame(options_, peer, kShortMessageBytes));
  }
  return Ok{};
}

}  // namespace lockstep

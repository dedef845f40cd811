// What the links of a new group cost, for the choice of an algorithm. Each pair of joined ranks
// plays ping-pong, pair after pair in one order, so that pairs with a rank in common do not disturb
// each other; then every rank gets the figures of all.
#include <algorithm>
#include <chrono>

#include "collective/group.h"
#include "collective/peer_wait.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// With more ranks the pairs would take longer than a better choice saves; they use usual costs.
constexpr int kMeasuredRanksMax = 16;
constexpr size_t kShortBytes = 64;
constexpr int kShortRounds = 16;
constexpr int kLongRounds = 4;

Status send_frame(const GroupOptions& options, int peer, size_t bytes) {
  Link& link = *options.links[static_cast<size_t>(peer)];
  PeerWait wait(options);
  auto frame = link.acquire(bytes);
  while (frame.empty()) {
    link.flush();
    TRY(wait.pause(0, peer_bit(peer)));
    frame = link.acquire(bytes);
  }
  std::fill(frame.begin(), frame.end(), std::byte{0});
  link.post();
  while (!link.flush()) TRY(wait.pause(0, peer_bit(peer)));
  return Ok{};
}

Status take_frame(const GroupOptions& options, int peer, size_t bytes) {
  Link& link = *options.links[static_cast<size_t>(peer)];
  PeerWait wait(options);
  while (link.peek().empty()) TRY(wait.pause(peer));
  if (link.peek().size() != bytes) {
    return peer_error(ErrorCode::kCorrupt, options.name_of(peer),
                      "a message has another length than agreed");
  }
  link.release();
  return Ok{};
}

Result<double> round_trip_ns(const GroupOptions& options, int peer, size_t bytes) {
  const auto start = Clock::now();
  TRY(send_frame(options, peer, bytes));
  TRY(take_frame(options, peer, kShortBytes));
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

}  // namespace

Status Group::measure_links() {
  const bool has_choice = size() > 2 && options_.algorithm == SumAlgorithm::kAuto;
  if (!has_choice || size() > kMeasuredRanksMax) return Ok{};
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

Result<LinkCost> Group::measure_link(int peer) {
  const size_t long_bytes = options_.piece_bytes;
  double short_ns = 1e9, long_ns = 1e9;
  for (int round = 0; round < kShortRounds; ++round) {
    short_ns = std::min(short_ns, TRY(round_trip_ns(options_, peer, kShortBytes)));
  }
  for (int round = 0; round < kLongRounds; ++round) {
    long_ns = std::min(long_ns, TRY(round_trip_ns(options_, peer, long_bytes)));
  }
  const double bytes_ns = std::max(long_ns - short_ns, 1.0);
  const double bytes_per_us = static_cast<double>(long_bytes) * 1e3 / bytes_ns;
  return LinkCost{.latency_ns = static_cast<uint32_t>(short_ns / 2),
                  .bytes_per_us = static_cast<uint32_t>(std::clamp(bytes_per_us, 1.0, 1e6))};
}

Status Group::answer_measure(int peer) {
  for (int round = 0; round < kShortRounds + kLongRounds; ++round) {
    TRY(take_frame(options_, peer, round < kShortRounds ? kShortBytes : options_.piece_bytes));
    TRY(send_frame(options_, peer, kShortBytes));
  }
  return Ok{};
}

}  // namespace lockstep

#include "collective/group/probe.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "base/percentile.h"
#include "base/threads/wait.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr size_t kShortFrameBytes = 8;
constexpr size_t kLongBytes = size_t{16} * 1024;
constexpr size_t kStreamFrameMax = size_t{1} << 20;
constexpr size_t kStreamMax = size_t{64} << 20;
constexpr size_t kWarmUpRounds = 5;
constexpr uint64_t kWarmUpShare = 8;  // of a stream
constexpr int kRoundsPerClock = 64;
constexpr std::byte kLast{1};  // first byte of the last ping

// Announced before a stream by the end that begins.
struct Stream {
  uint64_t frame_bytes = 0;
  uint64_t frames = 0;
};

class Prober {
 public:
  Prober(Link& link, const ProbeOptions& options)
      : link_(link),
        options_(options),
        wait_(options.timeout, options.cancelled),
        scratch_(kStreamFrameMax) {}

  Status send(std::span<const std::byte> bytes) {
    std::span<std::byte> frame;
    while ((frame = link_.acquire(bytes.size())).empty()) {
      link_.flush();
      TRY(pause("room for a message"));
    }
    std::memcpy(frame.data(), bytes.data(), bytes.size());
    link_.post();
    wait_.restart();
    return Ok{};
  }

  Status receive(std::span<std::byte> bytes) {
    std::span<const std::byte> frame;
    while ((frame = link_.peek()).empty()) TRY(pause("message"));
    if (frame.size() != bytes.size()) {
      return Error{ErrorCode::kCorrupt, "a probe does not have the agreed length"};
    }
    std::memcpy(bytes.data(), frame.data(), bytes.size());
    link_.release();
    wait_.restart();
    return Ok{};
  }

  Status flush() {
    while (!link_.flush()) TRY(pause("room for a message"));
    return Ok{};
  }

  std::span<std::byte> scratch(size_t bytes) { return std::span(scratch_).first(bytes); }

  Result<std::vector<double>> ping(size_t bytes);
  Status answer_pings(size_t bytes);
  Result<double> stream(const Stream& stream);
  Status take_stream();

 private:
  Status pause(std::string_view what) {
    if (++rounds_ % kRoundsPerClock == 0) TRY(link_.health());
    return wait_.pause(what);
  }

  Link& link_;
  const ProbeOptions& options_;
  Wait wait_;
  uint64_t rounds_ = 0;
  std::vector<std::byte> scratch_;
};

// One-way times in us, ascending.
Result<std::vector<double>> Prober::ping(size_t bytes) {
  std::vector<double> times_us;
  const auto message = scratch(bytes);
  const Clock::time_point end = Clock::now() + options_.budget;
  bool is_last = false;
  for (int round = 0; !is_last; ++round) {
    const Clock::time_point start = Clock::now();
    is_last = start > end || round >= options_.rounds_max;
    message[0] = is_last ? kLast : std::byte{0};
    TRY(send(message));
    TRY(receive(message));
    times_us.push_back(Microseconds(Clock::now() - start).count() / 2);
  }
  if (times_us.size() > 2 * kWarmUpRounds) {
    times_us.erase(times_us.begin(), times_us.begin() + kWarmUpRounds);
  }
  std::sort(times_us.begin(), times_us.end());
  return times_us;
}

Status Prober::answer_pings(size_t bytes) {
  const auto message = scratch(bytes);
  do {
    TRY(receive(message));
    TRY(send(message));
  } while (message[0] != kLast);
  return Ok{};
}

// Gbit/s until the other end confirms that it has all of it.
Result<double> Prober::stream(const Stream& stream) {
  TRY(send(std::as_bytes(std::span(&stream, 1))));
  const auto frame = scratch(stream.frame_bytes);
  const Clock::time_point start = Clock::now();
  for (uint64_t i = 0; i < stream.frames; ++i) TRY(send(frame));
  TRY(receive(scratch(kShortFrameBytes)));
  const double time_us = Microseconds(Clock::now() - start).count();
  const double bits = 8.0 * static_cast<double>(stream.frames * stream.frame_bytes);
  return bits / time_us / 1000;
}

Status Prober::take_stream() {
  Stream stream;
  TRY(receive(std::as_writable_bytes(std::span(&stream, 1))));
  if (stream.frame_bytes == 0 || stream.frame_bytes > kStreamFrameMax ||
      stream.frames > kStreamMax) {
    return Error{ErrorCode::kCorrupt, "a probe announces an invalid length"};
  }
  for (uint64_t i = 0; i < stream.frames; ++i) TRY(receive(scratch(stream.frame_bytes)));
  TRY(send(scratch(kShortFrameBytes)));
  return flush();
}

// As much as the link carries within the budget, estimated from the times of the two sizes.
Stream plan_stream(const PairTimes& times, const ProbeOptions& options, size_t frame_bytes_max) {
  const double least_us = std::max(times.p50_16k_us - times.p50_us, 0.1);
  const double budget_us = Microseconds(options.budget).count();
  const double bytes = std::clamp(static_cast<double>(kLongBytes) * budget_us / least_us,
                                  static_cast<double>(kLongBytes), static_cast<double>(kStreamMax));
  Stream stream;
  stream.frame_bytes = std::min({frame_bytes_max, kStreamFrameMax, static_cast<size_t>(bytes)});
  stream.frames = std::max<uint64_t>(1, static_cast<uint64_t>(bytes) / stream.frame_bytes);
  return stream;
}

}  // namespace

std::vector<PairTimes> formed_pairs(const Group& group) {
  std::vector<PairTimes> pairs;
  const std::span<const LinkCost> costs = group.link_costs();
  for (int a = 0; a < group.size() && !costs.empty(); ++a) {
    for (int b = a + 1; b < group.size(); ++b) {
      if (!group.graph().has(a, b)) continue;
      const LinkCost& cost = costs[static_cast<size_t>(a * group.size() + b)];
      pairs.push_back({.a = a,
                       .b = b,
                       .p50_us = cost.p50_ns / 1e3,
                       .p99_us = cost.p99_ns / 1e3,
                       .gbit_s = cost.bytes_per_us * 8 / 1e3});
    }
  }
  return pairs;
}

Result<PairTimes> probe_link(Link& link, bool begins, const ProbeOptions& options) {
  Prober prober(link, options);
  PairTimes times;
  const size_t long_bytes = std::min(kLongBytes, link.frame_bytes_max());
  if (!begins) {
    TRY(prober.answer_pings(kShortFrameBytes));
    TRY(prober.answer_pings(long_bytes));
    TRY(prober.take_stream());
    TRY(prober.take_stream());
    return times;
  }
  const std::vector<double> short_us = TRY(prober.ping(kShortFrameBytes));
  times.p50_us = at_percent(short_us, 50);
  times.p99_us = at_percent(short_us, 99);
  const std::vector<double> long_us = TRY(prober.ping(long_bytes));
  times.p50_16k_us = at_percent(long_us, 50);
  times.p99_16k_us = at_percent(long_us, 99);
  const Stream stream = plan_stream(times, options, link.frame_bytes_max());
  // The first frames use memory that was never touched.
  (void)TRY(prober.stream({stream.frame_bytes, stream.frames / kWarmUpShare}));
  times.gbit_s = TRY(prober.stream(stream));
  return times;
}

// Rank 0 broadcasts whose turn it is; the others sleep, so that the pair has the processors.
Result<std::vector<PairTimes>> probe_pairs(Group& group, const ProbeOptions& options) {
  std::vector<PairTimes> all;
  std::vector<std::byte> turn(1);
  for (int a = 0; a < group.size(); ++a) {
    for (int b = a + 1; b < group.size(); ++b) {
      TRY(group.wait_for(0));
      TRY(group.broadcast(0, turn, 1));
      PairTimes times;
      const bool is_own = group.rank() == a || group.rank() == b;
      Link* const link = is_own ? group.link_to(group.rank() == a ? b : a) : nullptr;
      if (link) times = TRY(probe_link(*link, group.rank() == a, options));
      times.a = a;
      times.b = b;
      if (group.rank() == 0 && a != 0) TRY(group.wait_for(a));
      std::vector<std::span<std::byte>> parts(static_cast<size_t>(group.size()));
      parts[static_cast<size_t>(a)] = std::as_writable_bytes(std::span(&times, 1));
      TRY(group.gather(0, parts));
      if (group.rank() == 0 && times.gbit_s > 0) all.push_back(times);
    }
  }
  return all;
}

}  // namespace lockstep

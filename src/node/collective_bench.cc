#include "node/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/local_group.h"
#include "node/worker_group.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kPumpMax{100};
constexpr size_t kBytesMax = size_t{1} << 30;
constexpr int kRoundsMax = 10'000'000;

class SlowestTimes final : public WorkerEvents {
 public:
  void on_token(uint64_t, int32_t) override {}
  void on_logits(uint64_t, std::span<const float>) override {}
  void on_end(uint64_t, Result<FinishReason>) override {}
  void on_pairs(std::span<const PairTimes>) override {}
  void on_times(int, const CollectiveTimes& times) override {
    slowest_.min_us = std::max(slowest_.min_us, times.min_us);
    slowest_.p50_us = std::max(slowest_.p50_us, times.p50_us);
    slowest_.p99_us = std::max(slowest_.p99_us, times.p99_us);
    slowest_.max_us = std::max(slowest_.max_us, times.max_us);
    slowest_.mean_us = std::max(slowest_.mean_us, times.mean_us);
    ++count_;
  }

  int count() const { return count_; }
  const CollectiveTimes& slowest() const { return slowest_; }

 private:
  CollectiveTimes slowest_;
  int count_ = 0;
};

Status check_options(const CollectiveBenchOptions& options) {
  if (options.ranks < 1 || options.ranks > LocalGroup::kRanksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks are asked for; 1 to {} are possible", options.ranks,
                             LocalGroup::kRanksMax)};
  }
  if (options.bytes < sizeof(float) || options.bytes > kBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} bytes are asked for; {} to {} are possible", options.bytes,
                             sizeof(float), kBytesMax)};
  }
  if (options.rounds < 1 || options.rounds > kRoundsMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} rounds are asked for; 1 to {} are possible", options.rounds, kRoundsMax)};
  }
  return check_link_options(options.link);
}

WorkerGroupOptions worker_options(const CollectiveBenchOptions& options) {
  WorkerGroupOptions workers;
  workers.setup.shares.assign(static_cast<size_t>(options.ranks), 1.0);
  workers.setup.link = options.link;
  workers.setup.algorithm = options.algorithm;
  workers.setup.wire = options.wire;
  workers.setup.bench_bytes = options.bytes;
  workers.setup.bench_rounds = options.rounds;
  workers.pin_threads = options.pin_threads;
  workers.program = options.worker_program;
  workers.arguments = options.worker_arguments;
  return workers;
}

}  // namespace

Result<CollectiveTimes> bench_collective_processes(const CollectiveBenchOptions& options) {
  TRY(check_options(options));
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  const auto workers = TRY(WorkerGroup::launch(worker_options(options)));
  SlowestTimes times;
  while (times.count() < options.ranks) {
    TRY(workers->pump(-1, kPumpMax, times));
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ErrorCode::kTimeout, fmt::format("no times within {} s, measure fewer rounds",
                                                    options.timeout.count() / 1000)};
    }
  }
  workers->end();
  return times.slowest();
}

}  // namespace lockstep

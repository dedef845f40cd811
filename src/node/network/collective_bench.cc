#include "node/network/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "node/group/group_supervisor.h"

namespace lockstep {
namespace {

constexpr size_t kBytesMax = size_t{1} << 30;
constexpr int kRoundsMax = 10'000'000;

class SlowestTimes final : public MeasuringEvents {
 public:
  explicit SlowestTimes(int ranks) : ranks_(ranks) {}

  void on_times(int, const CollectiveTimes& times) override {
    slowest_.min_us = std::max(slowest_.min_us, times.min_us);
    slowest_.p50_us = std::max(slowest_.p50_us, times.p50_us);
    slowest_.p99_us = std::max(slowest_.p99_us, times.p99_us);
    slowest_.max_us = std::max(slowest_.max_us, times.max_us);
    slowest_.mean_us = std::max(slowest_.mean_us, times.mean_us);
    ++count_;
  }

  bool have_all_come() const override { return count_ == ranks_; }
  const CollectiveTimes& slowest() const { return slowest_; }

 private:
  int ranks_;
  CollectiveTimes slowest_;
  int count_ = 0;
};

Status check_bench_options(const CollectiveBenchOptions& options) {
  if (options.ranks < 1 || options.ranks > GroupSupervisor::kRanksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks were requested; 1 to {} are possible", options.ranks,
                             GroupSupervisor::kRanksMax)};
  }
  if (options.bytes < sizeof(float) || options.bytes > kBytesMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} bytes were requested; {} to {} are possible", options.bytes,
                             sizeof(float), kBytesMax)};
  }
  if (options.rounds < 1 || options.rounds > kRoundsMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} rounds were requested; 1 to {} are possible", options.rounds, kRoundsMax)};
  }
  return check_link_options(options.link);
}

WorkerGroupOptions worker_options(const CollectiveBenchOptions& options) {
  WorkerGroupOptions workers = measuring_workers(options);
  workers.setup.spec.algorithm = options.algorithm;
  workers.setup.spec.wire = options.wire;
  workers.setup.bench_bytes = options.bytes;
  workers.setup.bench_rounds = options.rounds;
  return workers;
}

}  // namespace

Result<CollectiveTimes> bench_collective_processes(const CollectiveBenchOptions& options) {
  TRY(check_bench_options(options));
  SlowestTimes times(options.ranks);
  TRY(run_measuring(worker_options(options), options.timeout, times,
                    {"no times", "measure fewer rounds"}));
  return times.slowest();
}

}  // namespace lockstep

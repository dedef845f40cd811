#include "node/link_probe.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "node/local_group.h"
#include "node/worker_group.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kPumpMax{100};

class Pairs final : public WorkerEvents {
 public:
  void on_token(uint64_t, int32_t) override {}
  void on_logits(uint64_t, std::span<const float>) override {}
  void on_end(uint64_t, Result<FinishReason>) override {}
  void on_times(int, const CollectiveTimes&) override {}
  void on_pairs(std::span<const PairTimes> pairs) override {
    pairs_.emplace(pairs.begin(), pairs.end());
  }

  bool have_come() const { return pairs_.has_value(); }
  std::vector<PairTimes> take() { return std::move(*pairs_); }

 private:
  std::optional<std::vector<PairTimes>> pairs_;
};

}  // namespace

Result<std::vector<PairTimes>> probe_processes(const LinkProbeOptions& options) {
  if (options.ranks < 2 || options.ranks > LocalGroup::kRanksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks are asked for; 2 to {} are possible", options.ranks,
                             LocalGroup::kRanksMax)};
  }
  TRY(check_link_options(options.link));
  WorkerGroupOptions launch;
  launch.setup.shares.assign(static_cast<size_t>(options.ranks), 1.0);
  launch.setup.link = options.link;
  launch.setup.probes = true;
  launch.pin_threads = options.pin_threads;
  launch.program = options.worker_program;
  launch.arguments = options.worker_arguments;
  const auto deadline = std::chrono::steady_clock::now() + options.timeout;
  const auto workers = TRY(WorkerGroup::launch(launch));
  Pairs pairs;
  while (!pairs.have_come()) {
    TRY(workers->pump(-1, kPumpMax, pairs));
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ErrorCode::kTimeout,
                   fmt::format("the links were not measured within {} s, probe fewer ranks",
                               options.timeout.count() / 1000)};
    }
  }
  workers->end();
  return pairs.take();
}

}  // namespace lockstep

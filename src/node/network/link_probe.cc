#include "node/network/link_probe.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "node/group/group_supervisor.h"

namespace lockstep {
namespace {

class Pairs final : public MeasuringEvents {
 public:
  void on_pairs(std::span<const PairTimes> pairs) override {
    pairs_.emplace(pairs.begin(), pairs.end());
  }

  bool have_all_come() const override { return pairs_.has_value(); }
  std::vector<PairTimes> take() { return std::move(*pairs_); }

 private:
  std::optional<std::vector<PairTimes>> pairs_;
};

}  // namespace

Result<std::vector<PairTimes>> probe_processes(const MeasuringOptions& options) {
  if (options.ranks < 2 || options.ranks > GroupSupervisor::kRanksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks were requested; 2 to {} are possible", options.ranks,
                             GroupSupervisor::kRanksMax)};
  }
  TRY(check_link_options(options.link));
  WorkerGroupOptions workers = measuring_workers(options);
  workers.setup.probes = true;
  Pairs pairs;
  TRY(run_measuring(workers, options.timeout, pairs,
                    {"the links were not measured", "probe fewer ranks"}));
  return pairs.take();
}

}  // namespace lockstep

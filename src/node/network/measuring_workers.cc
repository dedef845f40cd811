#include "node/network/measuring_workers.h"

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kMeasurePumpMax{100};

}  // namespace

WorkerGroupOptions measuring_workers(const MeasuringOptions& options) {
  WorkerGroupOptions workers;
  GroupSpec& spec = workers.setup.spec;
  spec.shares = equal_shares(options.ranks);
  spec.link = options.link;
  spec.threads = 1;
  spec.pin_threads = options.pin_threads;
  workers.command = {options.worker_program, options.worker_arguments};
  return workers;
}

Status run_measuring(const WorkerGroupOptions& workers, std::chrono::milliseconds timeout,
                     MeasuringEvents& events, LateSentence late) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const auto group = TRY(WorkerGroup::launch(workers));
  while (!events.have_all_come()) {
    TRY(group->pump(-1, kMeasurePumpMax, events));
    if (std::chrono::steady_clock::now() > deadline) {
      return Error{ErrorCode::kTimeout, fmt::format("{} within {} s, {}", late.what,
                                                    timeout.count() / 1000, late.advice)};
    }
  }
  group->end();
  return Ok{};
}

}  // namespace lockstep

// Worker processes of this machine that measure their links and end: what `lockstep bench
// collective` and `lockstep probe` have in common.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/worker_group.h"
#include "transport/link_options.h"

namespace lockstep {

struct MeasuringOptions {
  int ranks = 2;
  LinkOptions link;
  bool pin_threads = true;  // one core for each rank, where there are so many
  std::chrono::milliseconds timeout{120'000};
  std::string worker_program;  // as in LocalGroupOptions
  std::vector<std::string> worker_arguments;
};

// Takes what such workers report; nobody generates.
class MeasuringEvents : public WorkerEvents {
 public:
  void on_start(uint64_t, int) override {}
  void on_token(uint64_t, int32_t) override {}
  void on_logits(uint64_t, std::span<const float>) override {}
  void on_end(uint64_t, Result<FinishReason>) override {}
  void on_times(int, const CollectiveTimes&) override {}
  void on_pairs(std::span<const PairTimes>) override {}

  virtual bool have_all_come() const = 0;
};

// The setup that the options ask for; what is measured is the caller's to add.
WorkerGroupOptions measuring_workers(const MeasuringOptions& options);

// The sentence where the time does not suffice: "<what> within N s, <advice>".
struct LateSentence {
  std::string_view what;
  std::string_view advice;
};

// Starts the workers and ends them once all has come; kTimeout after `timeout`.
Status run_measuring(const WorkerGroupOptions& workers, std::chrono::milliseconds timeout,
                     MeasuringEvents& events, LateSentence late);

}  // namespace lockstep

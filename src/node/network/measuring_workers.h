// Worker processes of this machine that measure their links and exit: shared by `lockstep bench
// collective` and `lockstep probe`.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/group/worker_group.h"
#include "transport/link_options.h"

namespace lockstep {

struct MeasuringOptions {
  int ranks = 2;
  LinkOptions link;
  bool pin_threads = true;  // one core per rank, if there are enough
  std::chrono::milliseconds timeout{120'000};
  std::string worker_program;  // as in GroupSupervisorOptions
  std::vector<std::string> worker_arguments;
};

// Receives the workers' measurements; they generate nothing.
class MeasuringEvents : public WorkerEvents {
 public:
  void on_event(RequestEvent) override {}

  virtual bool have_all_come() const = 0;
};

// The common setup; the caller adds what to measure.
WorkerGroupOptions measuring_workers(const MeasuringOptions& options);

// The error if time runs out: "<what> within N s, <advice>".
struct LateSentence {
  std::string_view what;
  std::string_view advice;
};

// Starts the workers and ends them once all results are in; kTimeout after `timeout`.
Status run_measuring(const WorkerGroupOptions& workers, std::chrono::milliseconds timeout,
                     MeasuringEvents& events, LateSentence late);

}  // namespace lockstep

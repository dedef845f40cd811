#include "node/worker.h"

#ifdef __linux__
#include <signal.h>
#include <sys/prctl.h>
#endif

#include <chrono>
#include <new>
#include <utility>

#include "base/machine.h"
#include "collective/bench.h"
#include "collective/probe.h"
#include "kernels/isa.h"
#include "node/messages.h"
#include "node/worker_control.h"
#include "node/worker_links.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kSetupWaitMax{30};  // for the node's next word

// Passes what rank 0's engine reports on to the node.
class ReportToNode final : public EngineEvents {
 public:
  explicit ReportToNode(WorkerControl& control) : control_(control) {}

  void on_token(uint64_t request, int32_t token) override {
    control_.send(Message::kToken, encode_token(request, token));
  }
  void on_logits(uint64_t request, std::span<const float> row) override {
    control_.send(Message::kLogits, encode_logits(request, row));
  }
  void on_end(uint64_t request, FinishReason reason) override {
    control_.send(Message::kEnd, encode_end(request, reason));
  }
  void on_error(uint64_t request, const Error& error) override {
    control_.send(Message::kError, encode_error(request, error));
  }

 private:
  WorkerControl& control_;
};

// Requests go to an engine only while it exists.
class Attachment {
 public:
  Attachment(WorkerControl& control, Engine* engine) : control_(control) {
    control_.attach(engine);
  }
  ~Attachment() { control_.attach(nullptr); }
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 private:
  WorkerControl& control_;
};

// The node ends us by closing the channel; this is for a node that is killed while our control
// thread cannot run.
void die_with_parent() {
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
}

Result<EngineOptions> engine_options(const WorkerSetup& setup, const KernelTable* kernels,
                                     Progress* progress) {
  EngineOptions options;
  options.model = setup.model;
  options.shares = setup.shares;
  options.threads = setup.threads;
  options.first_core = setup.first_core;
  options.context = setup.context;
  options.sequences_max = setup.sequences_max;
  options.batch_tokens_max = setup.batch_tokens_max;
  options.device = setup.device;
  options.exact = setup.exact;
  options.bits = setup.bits;
  options.link = setup.link.kind;
  options.stages = setup.stages;
  options.kernels = kernels;
  options.progress = progress;
  return options;
}

ProbeOptions probe_options(ProbeOptions options, const WorkerControl& control) {
  options.cancelled = control.cancelled();
  return options;
}

Status serve(const WorkerSetup& setup, const EngineFactory& factory, Group group,
             const KernelTable* kernels, WorkerControl& control) {
  const std::vector<PairTimes> pairs =
      TRY(probe_pairs(group, probe_options(quick_probe(group.size()), control)));
  if (setup.rank == 0) control.send(Message::kPairs, encode_pairs(pairs));
  const EngineOptions options = TRY(engine_options(setup, kernels, &control.progress()));
  const std::unique_ptr<Engine> engine = TRY(factory(options, std::move(group)));
  const Attachment attachment(control, engine.get());
  control.send(Message::kReady, encode_report(engine->report()));
  ReportToNode events(control);
  return engine->run(events);
}

// The node ends a worker that has measured, so that no rank's exit looks like a failure to the
// others.
Status measure(const WorkerSetup& setup, Group group, WorkerControl& control) {
  if (setup.first_core >= 0) pin_this_thread(setup.first_core);
  const CollectiveTimes times =
      TRY(bench_all_reduce(group, setup.bench_bytes, setup.bench_rounds, setup.wire != Wire::kF32));
  control.send(Message::kTimes, encode_times(times));
  control.wait_stop(kSetupWaitMax);
  return Ok{};
}

Status probe(const WorkerSetup& setup, Group group, WorkerControl& control) {
  if (setup.first_core >= 0) pin_this_thread(setup.first_core);
  const std::vector<PairTimes> pairs = TRY(probe_pairs(group, probe_options({}, control)));
  if (setup.rank == 0) control.send(Message::kPairs, encode_pairs(pairs));
  control.wait_stop(kSetupWaitMax);
  return Ok{};
}

Status work(const EngineFactory& factory, WorkerControl& control) {
  const WorkerSetup setup = TRY(decode_setup(TRY(control.wait_setup(kSetupWaitMax))));
  const KernelTable* const kernels = TRY(choose_kernels());
  Group::Options options;
  options.rank = setup.rank;
  options.links = TRY(open_worker_links(setup, control));
  options.timeout = std::chrono::milliseconds(setup.group_timeout_ms);
  options.cancelled = control.cancelled();
  options.progress = &control.progress();
  options.kernels = kernels;
  options.algorithm = setup.algorithm;
  options.wire = setup.wire;
  Group group = TRY(Group::form(std::move(options)));
  if (setup.probes) return probe(setup, std::move(group), control);
  if (setup.bench_bytes > 0) return measure(setup, std::move(group), control);
  return serve(setup, factory, std::move(group), kernels, control);
}

}  // namespace

int worker_main(int control_fd, const EngineFactory& factory) {
  die_with_parent();
  auto control = WorkerControl::open(UniqueFd(control_fd));
  if (!control.ok()) return 1;
  Status done = Ok{};
  try {
    done = work(factory, *control.value());
  } catch (const std::bad_alloc&) {
    done = Error{ErrorCode::kExhausted, "not enough memory for this rank's part of the model"};
  }
  if (done.ok()) return 0;
  control.value()->send(Message::kFatal, encode_error(0, done.error()));
  return 1;
}

}  // namespace lockstep

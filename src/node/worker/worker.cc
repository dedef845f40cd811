#include "node/worker/worker.h"

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

#include "base/machine/machine.h"
#include "base/process/core_dumps.h"
#include "base/process/parent_watch.h"
#include "base/threads/wait.h"
#include "collective/group/bench.h"
#include "collective/group/probe.h"
#include "kernels/isa.h"
#include "node/wire/event_codec.h"
#include "node/wire/messages.h"
#include "node/worker/worker_control.h"
#include "node/worker/worker_links.h"
#include "transport/metered_link.h"
#include "transport/unformed_link.h"
#include "transport/verbs/verbs_upgrade.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kSetupWaitMax{30};  // for the node's next message
// For the next epoch: another rank may have to load again. The node ends us if it gives up.
constexpr std::chrono::hours kJoinWaitMax{24};
constexpr std::chrono::seconds kMeasureLinksEvery{2};

// Lets requests reach an engine only while it exists.
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

EngineOptions engine_options(const WorkerSetup& setup, const DiskCache& cache,
                             const KernelTable* kernels, Progress* progress) {
  EngineOptions options;
  options.spec = setup.spec;
  options.first_core = setup.first_core;
  options.cache_folder = cache.folder;
  options.cache_disk_bytes = cache.bytes;
  options.kernels = kernels;
  options.progress = progress;
  options.measure_links_every = kMeasureLinksEvery;
  return options;
}

// A worker's state from set-up to end.
struct Worker {
  const WorkerSetup setup;
  const DiskCache cache;
  const KernelTable* kernels = nullptr;
  const LinkWrapper& wrap_link;
  WorkerControl& control;
  uint64_t late_count = 0;
  std::vector<LinkUse> links{};  // of the latest group

  Group::Options group_options() const;
  Result<Group> form_group(const EpochOrder& order);
};

Group::Options Worker::group_options() const {
  Group::Options options;
  options.rank = setup.rank;
  options.timeout = std::chrono::milliseconds(setup.group_timeout_ms);
  options.cancelled = control.cancelled();
  options.progress = &control.progress();
  options.kernels = kernels;
  options.algorithm = setup.spec.algorithm;
  options.wire = setup.spec.wire;
  return options;
}

Result<Group> Worker::form_group(const EpochOrder& order) {
  Group::Options options = group_options();
  WorkerLinks opened = TRY(open_worker_links(setup, order, control, late_count));
  options.links = std::move(opened.links);
  links = std::move(opened.uses);
  options.meters = std::make_shared<LinkMeters>(options.links.size());
  for (size_t peer = 0; peer < options.links.size(); ++peer) {
    std::unique_ptr<Link>& link = options.links[peer];
    if (!link) continue;
    if (wrap_link) link = wrap_link(std::move(link));
    link = std::make_unique<MeteredLink>(std::move(link), options.meters, peer);
  }
  control.watch(options.meters);
  return Group::form(std::move(options));
}

// Forming another group cannot repair the device or the memory of this process.
bool ends_rank(const Error& error) {
  return error.code == ErrorCode::kInternal || error.code == ErrorCode::kExhausted;
}

// For queries of the model's status.
EpochReport report(Worker& worker, const EpochOrder& order, std::vector<PairTimes> pairs) {
  return {.epoch = order.setup.epoch,
          .late_calls = worker.late_count,
          .late_frames = verbs_late_frame_count(),
          .links = worker.links,
          .pairs = std::move(pairs)};
}

// One epoch, from its set-up until run() returns; Ok: the group was stopped.
Status serve_epoch(Worker& worker, Engine& engine, const EpochOrder& order) {
  Group group = TRY(worker.form_group(order));
  std::vector<PairTimes> pairs;
  if (worker.setup.rank == 0) pairs = formed_pairs(group);
  if (const Status rejoined = engine.rejoin(std::move(group)); !rejoined.ok()) {
    return Error{ErrorCode::kInternal, rejoined.error().message};
  }
  // rejoin() clears an earlier leave(); run() sees a later one.
  if (worker.control.cancelled()->load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCancelled, "the epoch ended before all ranks had joined"};
  }
  worker.control.send(Message::kReady,
                      encode_epoch_report(report(worker, order, std::move(pairs))));
  return engine.run([&](const RequestEvent& event) {
    worker.control.send(Message::kEvent, encode_event(event));
  });
}

Status serve(Worker& worker, const EngineFactory& factory) {
  WorkerControl& control = worker.control;
  const EngineOptions options =
      engine_options(worker.setup, worker.cache, worker.kernels, &control.progress());
  Group::Options unformed = worker.group_options();
  unformed.links = unformed_links(worker.setup.rank, worker.setup.size());
  const std::unique_ptr<Engine> engine = TRY(factory(options, Group(std::move(unformed))));
  const Attachment attachment(control, engine.get());
  control.send(Message::kLoaded, encode_report(engine->report()));
  while (true) {
    control.progress().set(Progress::kIdle);
    const std::optional<EpochOrder> order = TRY(control.wait_join(kJoinWaitMax));
    if (!order) return Ok{};
    const Status served = serve_epoch(worker, *engine, *order);
    if (served.ok() || control.is_stopped()) return Ok{};
    if (ends_rank(served.error())) return served.error();
    control.send(Message::kLeft, encode_error(served.error()));
  }
}

// The node ends a worker that has measured, so that no rank's exit looks like a failure to the
// others.
Status measure(Worker& worker) {
  const WorkerSetup& setup = worker.setup;
  worker.control.send(Message::kLoaded, encode_report({}));
  const std::optional<EpochOrder> order = TRY(worker.control.wait_join(kSetupWaitMax));
  if (!order) return Ok{};
  Group group = TRY(worker.form_group(*order));
  worker.control.send(Message::kReady, encode_epoch_report(report(worker, *order, {})));
  if (setup.first_core >= 0) pin_this_thread(setup.first_core);
  if (setup.probes) {
    const std::vector<PairTimes> pairs =
        TRY(probe_pairs(group, {.cancelled = worker.control.cancelled()}));
    if (setup.rank == 0) worker.control.send(Message::kPairs, encode_pairs(pairs));
  } else {
    const CollectiveTimes times = TRY(bench_all_reduce(group, setup.bench_bytes, setup.bench_rounds,
                                                       setup.spec.wire != Wire::kF32));
    worker.control.send(Message::kTimes, encode_times(times));
  }
  worker.control.wait_stop(kSetupWaitMax);
  return Ok{};
}

// Adds what only this machine knows.
WorkerSetup completed(WorkerSetup setup, const WorkerFlags& flags) {
  if (!flags.files.model.empty()) setup.spec.model = flags.files.model;
  if (!flags.files.draft_model.empty()) setup.spec.draft_model = flags.files.draft_model;
  if (!flags.device.empty()) setup.spec.device = flags.device;
  setup.hosts = flags.hosts;
  setup.paths = flags.paths;
  int& threads = setup.spec.threads;
  if (threads == 0) threads = std::max(1, available_core_count() / flags.machine_ranks);
  allow_naps(threads * flags.machine_ranks <= available_core_count());
  return setup;
}

Status work(const WorkerFlags& flags, const EngineFactory& factory, const LinkWrapper& wrap_link,
            WorkerControl& control) {
  WorkerSetup setup = completed(TRY(decode_setup(TRY(control.wait_setup(kSetupWaitMax)))), flags);
  const KernelTable* const kernels = TRY(choose_kernels());
  Worker worker{std::move(setup), flags.cache, kernels, wrap_link, control};
  const bool measures = worker.setup.probes || worker.setup.bench_bytes > 0;
  return measures ? measure(worker) : serve(worker, factory);
}

}  // namespace

int worker_main(const WorkerFlags& flags, const EngineFactory& factory,
                const LinkWrapper& wrap_link) {
  die_with_parent();
  if (flags.forbids_core_dumps) forbid_core_dumps();
  auto control = WorkerControl::open(UniqueFd(flags.control_fd));
  if (!control.ok()) return 1;
  Status done = Ok{};
  try {
    done = work(flags, factory, wrap_link, *control.value());
  } catch (const std::bad_alloc&) {
    done = Error{ErrorCode::kExhausted, "not enough memory for this rank's part of the model"};
  }
  if (done.ok()) return 0;
  control.value()->send(Message::kFatal, encode_error(done.error()));
  return 1;
}

}  // namespace lockstep

#include "node/group/group_supervisor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/machine/machine.h"
#include "node/requests/request_check.h"
#include "transport/link_kind.h"

namespace lockstep {
namespace {

int default_threads(int ranks) {
  return std::max(1, available_core_count() / ranks);
}

Status check_places(const GroupSupervisorOptions& options, int ranks) {
  for (int rank = 0; options.places && rank < ranks; ++rank) {
    const std::string node = options.places->node_name(rank);
    if (node.empty() || options.spec.link.kind != LinkKind::kShm) continue;
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format(
            "rank {} on {} does not share memory with this machine: its link must be tcp or verbs",
            rank, node)};
  }
  return Ok{};
}

Status check_group_options(const GroupSupervisorOptions& options) {
  const GroupSpec& spec = options.spec;
  const int ranks = spec.size();
  if (ranks < 1 || ranks > GroupSupervisor::kRanksMax) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks were requested; 1 to {} are possible", ranks,
                             GroupSupervisor::kRanksMax)};
  }
  for (double share : spec.shares) {
    if (!(share > 0) || !std::isfinite(share)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a share of {} is invalid: it must be above 0", share)};
    }
  }
  const int stages = spec.link.stages;
  if (stages < 1 || ranks % stages != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} ranks cannot form {} stages of the same size", ranks, stages)};
  }
  TRY(check_link_options(spec.link));
  TRY(check_kv(spec.exact, spec.kv));
  if (spec.bits != 0 && spec.ngrams_on_disk) {
    return Error{
        ErrorCode::kInvalidArgument,
        "--bits quantises the table of n-grams too: leave out --ngrams-on-disk, or write a "
        "quantised model with `lockstep quantize`"};
  }
  TRY(check_places(options, ranks));
  if (spec.threads < 0 || spec.context < 0 || spec.sequences_max < 1 || options.queue_max < 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "threads, context and queue must not be negative, sequences at least 1"};
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<GroupSupervisor>> GroupSupervisor::open(GroupSupervisorOptions options) {
  TRY(check_group_options(options));
  // Ranks on other machines choose for themselves.
  int& threads = options.spec.threads;
  if (threads == 0 && !options.places) threads = default_threads(options.spec.size());
  ModelFolder folder = TRY(read_model_folder(options.spec.model));
  WakePipe wake = TRY(WakePipe::create());
  std::unique_ptr<GroupSupervisor> group(
      new GroupSupervisor(std::move(options), std::move(folder), std::move(wake)));
  group->thread_ = std::thread([self = group.get()] { self->supervise(); });
  return group;
}

Result<std::unique_ptr<GroupSupervisor>> GroupSupervisor::start(
    GroupSupervisorOptions options, const std::function<void(const ModelStatus&)>& on_look) {
  std::unique_ptr<GroupSupervisor> group = TRY(open(std::move(options)));
  std::unique_lock lock(group->mutex_);
  const auto is_over = [&] { return group->status_.state != ModelStatus::State::kLoading; };
  while (!is_over()) {
    if (on_look) {
      lock.unlock();
      on_look(group->status());
      lock.lock();
    }
    group->started_.wait_for(lock, kLookPeriod, is_over);
  }
  if (group->status_.state == ModelStatus::State::kFailed) return group->start_error_;
  lock.unlock();
  return group;
}

GroupSupervisor::GroupSupervisor(GroupSupervisorOptions options, ModelFolder folder, WakePipe wake)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      wake_(std::move(wake)),
      requests_([this] {
        std::lock_guard lock(mutex_);
        --status_.running;
      }) {
  status_.name = options_.name.empty() ? folder_.name : options_.name;
  status_.link = link_kind_name(options_.spec.link.kind);
  status_.stages = options_.spec.link.stages;
  status_.threads = options_.spec.threads;
  status_.context = options_.spec.context;
  status_.pooling = folder_.pooling;
}

GroupSupervisor::~GroupSupervisor() {
  stop();
}

void GroupSupervisor::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.wake();
  if (options_.places) options_.places->stop();
  if (thread_.joinable()) thread_.join();
}

// Rank 0's only: other ranks here have parts of the same pages.
void GroupSupervisor::on_page_counts(int rank, const PageStoreCounts& counts) {
  if (rank != 0) return;
  const std::lock_guard lock(mutex_);
  status_.pages = counts;
}

// Only rank 0 counts.
void GroupSupervisor::on_draft_counts(const DraftCounts& counts) {
  const std::lock_guard lock(mutex_);
  status_.drafts = counts;
}

// The lower rank of a pair reports for both directions.
void GroupSupervisor::on_link_readings(int rank, std::span<const LinkReading> links) {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < status_.links.size(); ++i) {
    PairTimes& times = status_.links[i].times;
    const auto is_same = [&](const LinkReading& link) {
      return times.a == rank && times.b == link.peer;
    };
    const auto link = std::find_if(links.begin(), links.end(), is_same);
    if (link == links.end()) continue;
    link_rates_[i].note(now, link->bytes);
    if (link->p50_ns == 0) continue;
    times.p50_us = link->p50_ns / 1e3;
    times.p99_us = link->p99_ns / 1e3;
    times.gbit_s = link->bytes_per_us * 8 / 1e3;
  }
}

void GroupSupervisor::on_load_bytes(const LoadBytes& bytes) {
  const std::lock_guard lock(mutex_);
  if (status_.state == ModelStatus::State::kReady) return;
  load_rate_.note(std::chrono::steady_clock::now(), bytes.read);
  status_.loading = {.read_bytes = bytes.read, .whole_bytes = bytes.whole};
}

ModelStatus GroupSupervisor::status() const {
  std::lock_guard lock(mutex_);
  ModelStatus status = status_;
  const auto now = std::chrono::steady_clock::now();
  if (status.loading) status.loading->bytes_s = load_rate_.at(now);
  for (size_t i = 0; i < status.links.size(); ++i) status.links[i].bytes_s = link_rates_[i].at(now);
  return status;
}

Result<uint64_t> GroupSupervisor::generate(GenerateRequest request, EventSink events) {
  std::unique_lock lock(mutex_);
  TRY(check(request));
  const uint64_t id = next_id_++;
  ++status_.running;
  inbox_.submitted.push_back({id, std::move(request), std::move(events)});
  lock.unlock();
  wake_.wake();
  return id;
}

// Under the mutex.
Status GroupSupervisor::check(const GenerateRequest& request) const {
  if (stopping_ || status_.state == ModelStatus::State::kStopped) {
    return Error{ErrorCode::kPeerLost, fmt::format("the model {} is unloaded", status_.name)};
  }
  if (status_.state == ModelStatus::State::kFailed) {
    return Error{ErrorCode::kPeerLost, fmt::format("the model {} failed and is not restarted: {}",
                                                   status_.name, status_.last_error)};
  }
  return check_request(request, {.context = status_.context,
                                 .running = status_.running,
                                 .running_max = options_.spec.sequences_max + options_.queue_max});
}

Result<RankStatus> GroupSupervisor::kill_worker(std::optional<int> rank) {
  RankStatus killed;
  {
    std::lock_guard lock(mutex_);
    if (status_.state != ModelStatus::State::kReady) {
      return Error{ErrorCode::kPeerLost,
                   fmt::format("{} is not serving now, so no worker is killed: wait until it is "
                               "ready",
                               status_.name)};
    }
    const int wanted = rank.value_or(static_cast<int>(status_.ranks.size()) - 1);
    const auto found = std::find_if(status_.ranks.begin(), status_.ranks.end(),
                                    [&](const RankStatus& each) { return each.rank == wanted; });
    if (found == status_.ranks.end()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} has no rank {}: its ranks are 0 to {}", status_.name, wanted,
                               status_.ranks.size() - 1)};
    }
    killed = *found;
    inbox_.killed.push_back(killed);
  }
  wake_.wake();
  return killed;
}

void GroupSupervisor::cancel(uint64_t request) {
  {
    std::lock_guard lock(mutex_);
    // Nothing empties the inbox after the thread has ended.
    if (status_.state == ModelStatus::State::kFailed ||
        status_.state == ModelStatus::State::kStopped) {
      return;
    }
    inbox_.cancelled.push_back(request);
  }
  wake_.wake();
}

bool GroupSupervisor::is_stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace lockstep

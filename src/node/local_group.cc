#include "node/local_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/machine.h"
#include "node/request_check.h"
#include "transport/link_kind.h"

namespace lockstep {
namespace {

int default_threads(int ranks) {
  return std::max(1, available_core_count() / ranks);
}

Status check_places(const LocalGroupOptions& options, int ranks) {
  for (int rank = 0; options.places && rank < ranks; ++rank) {
    const std::string node = options.places->node_name(rank);
    if (node.empty() || options.link.kind != LinkKind::kShm) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("rank {} on {} shares no memory with this machine, its link must be "
                             "tcp or verbs",
                             rank, node)};
  }
  return Ok{};
}

Status check_options(const LocalGroupOptions& options) {
  const int ranks = static_cast<int>(options.shares.size());
  if (ranks < 1 || ranks > LocalGroup::kRanksMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} ranks are asked for; 1 to {} are possible", ranks, LocalGroup::kRanksMax)};
  }
  for (double share : options.shares) {
    if (!(share > 0) || !std::isfinite(share)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a share of {} makes no sense, it must be above 0", share)};
    }
  }
  if (options.stages < 1 || ranks % options.stages != 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} ranks cannot form {} stages of the same size", ranks, options.stages)};
  }
  LinkOptions link = options.link;
  link.stages = options.stages;
  TRY(check_link_options(link));
  TRY(check_places(options, ranks));
  if (options.threads < 0 || options.context < 0 || options.sequences_max < 1 ||
      options.queue_max < 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "threads, context and queue must not be negative, sequences at least 1"};
  }
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<LocalGroup>> LocalGroup::open(LocalGroupOptions options) {
  if (options.shares.empty() && options.ranks >= 1) {
    options.shares.assign(static_cast<size_t>(std::min(options.ranks, kRanksMax + 1)), 1.0);
  }
  TRY(check_options(options));
  options.ranks = static_cast<int>(options.shares.size());
  if (options.threads == 0 && !options.places) options.threads = default_threads(options.ranks);
  ModelFolder folder = TRY(read_model_folder(options.model));
  WakePipe wake = TRY(WakePipe::create());
  std::unique_ptr<LocalGroup> group(
      new LocalGroup(std::move(options), std::move(folder), std::move(wake)));
  group->thread_ = std::thread([self = group.get()] { self->supervise(); });
  return group;
}

Result<std::unique_ptr<LocalGroup>> LocalGroup::start(LocalGroupOptions options) {
  std::unique_ptr<LocalGroup> group = TRY(open(std::move(options)));
  std::unique_lock lock(group->mutex_);
  group->started_.wait(lock, [&] { return group->status_.state != ModelStatus::State::kLoading; });
  if (group->status_.state == ModelStatus::State::kFailed) return group->start_error_;
  lock.unlock();
  return group;
}

LocalGroup::LocalGroup(LocalGroupOptions options, ModelFolder folder, WakePipe wake)
    : options_(std::move(options)),
      folder_(std::move(folder)),
      wake_(std::move(wake)),
      requests_([this] {
        std::lock_guard lock(mutex_);
        --status_.running;
      }) {
  status_.name = options_.name.empty() ? folder_.name : options_.name;
  status_.link = link_kind_name(options_.link.kind);
  status_.stages = options_.stages;
  status_.threads = options_.threads;
  status_.context = options_.context;
  status_.pooling = folder_.pooling;
}

LocalGroup::~LocalGroup() {
  stop();
}

void LocalGroup::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.wake();
  if (options_.places) options_.places->stop();
  if (thread_.joinable()) thread_.join();
}

// Of rank 0: other ranks here have parts of the same pages.
void LocalGroup::on_page_counts(int rank, const PageStoreCounts& counts) {
  if (rank != 0) return;
  const std::lock_guard lock(mutex_);
  status_.pages = counts;
}

ModelStatus LocalGroup::status() const {
  std::lock_guard lock(mutex_);
  return status_;
}

Result<uint64_t> LocalGroup::generate(GenerateRequest request, GenerationEvents events) {
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
Status LocalGroup::check(const GenerateRequest& request) const {
  if (stopping_ || status_.state == ModelStatus::State::kStopped) {
    return Error{ErrorCode::kPeerLost, fmt::format("the model {} is unloaded", status_.name)};
  }
  if (status_.state == ModelStatus::State::kFailed) {
    return Error{ErrorCode::kPeerLost, fmt::format("the model {} failed and is not restarted: {}",
                                                   status_.name, status_.last_error)};
  }
  return check_request(request, {.context = status_.context,
                                 .running = status_.running,
                                 .running_max = options_.sequences_max + options_.queue_max});
}

void LocalGroup::cancel(uint64_t request) {
  {
    std::lock_guard lock(mutex_);
    // Nobody empties the inbox of a thread that has ended.
    if (status_.state == ModelStatus::State::kFailed ||
        status_.state == ModelStatus::State::kStopped) {
      return;
    }
    inbox_.cancelled.push_back(request);
  }
  wake_.wake();
}

bool LocalGroup::is_stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

}  // namespace lockstep

// How a WorkerGroup moves from one epoch to the next.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "node/group/worker_group.h"
#include "transport/shm/shm_link.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// For forming a group whose ranks are loaded; a rank's own limits are shorter (worker_links.cc).
constexpr milliseconds kJoinMax{45'000};

// Known only to the members of the group.
std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", device());
  return token;
}

Result<UniqueFd> duplicate(const UniqueFd& fd) {
  UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.is_open()) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("cannot pass memory to a worker: {}", strerror(errno))};
  }
  return copy;
}

// One region for each linked pair; for each rank those of its links, by peer.
Result<std::vector<std::vector<UniqueFd>>> create_regions(const LinkOptions& link, int size) {
  std::vector<std::vector<UniqueFd>> regions(static_cast<size_t>(size));
  for (int low = 0; low < size; ++low) {
    for (int high = low + 1; high < size; ++high) {
      if (!is_joined(link, size, low, high)) continue;
      UniqueFd region = TRY(ShmLink::create_region());
      regions[static_cast<size_t>(low)].push_back(TRY(duplicate(region)));
      regions[static_cast<size_t>(high)].push_back(std::move(region));
    }
  }
  return regions;
}

}  // namespace

void WorkerGroup::judge(const GroupMonitor::Verdict& verdict) {
  Worker& blamed = worker(verdict.rank);
  ++blamed.blames;
  // It may be stopped, and unable to leave by itself.
  if (verdict.must_go || blamed.blames > options_.blames_max) kill_now(blamed);
}

void WorkerGroup::kill_now(Worker& worker) {
  worker.is_going = true;
  worker.process->kill_now();
}

// From loading to serving.
Status WorkerGroup::advance() {
  const auto all = [this](bool Worker::*flag) {
    return std::all_of(workers_.begin(), workers_.end(),
                       [flag](const auto& worker) { return (*worker).*flag; });
  };
  if (phase_ == Phase::kLoading && all(&Worker::is_loaded)) TRY(join_epoch());
  if (phase_ == Phase::kJoining && all(&Worker::is_ready)) phase_ = Phase::kServing;
  const bool is_over = phase_ != Phase::kServing && Clock::now() > phase_deadline_;
  return is_over ? time_out() : Ok{};
}

// Ends the processes that are late.
Status WorkerGroup::time_out() {
  const bool is_loading = phase_ == Phase::kLoading;
  int last = 0;
  for (int rank = 0; rank < size(); ++rank) {
    if (is_loading ? worker(rank).is_loaded : worker(rank).is_ready) continue;
    kill_now(worker(rank));
    last = rank;
  }
  if (is_loading) {
    return Error{ErrorCode::kTimeout, fmt::format("the model was not loaded within {} s",
                                                  options_.load_timeout.count() / 1000)};
  }
  return Error{ErrorCode::kTimeout, fmt::format("rank {} has not joined the group within {} ms",
                                                last, kJoinMax.count())};
}

Status WorkerGroup::join_epoch() {
  phase_ = Phase::kJoining;
  phase_deadline_ = Clock::now() + kJoinMax;
  const std::string setup = encode_epoch({++epoch_, random_token()});
  std::vector<std::vector<UniqueFd>> regions(static_cast<size_t>(size()));
  const LinkOptions& link = options_.setup.spec.link;
  if (link.kind == LinkKind::kShm) regions = TRY(create_regions(link, size()));
  for (int rank = 0; rank < size(); ++rank) {
    Worker& each = worker(rank);
    each.in_epoch = true;
    each.is_ready = false;
    each.listening.reset();
    send(rank, Message::kJoin, setup, std::move(regions[static_cast<size_t>(rank)]));
  }
  return Ok{};
}

void WorkerGroup::end_epoch() {
  phase_ = Phase::kLeaving;
  phase_deadline_ = Clock::now() + options_.timeouts.progress;
  for (int rank = 0; rank < size(); ++rank) {
    if (worker(rank).in_epoch) send(rank, Message::kLeave, "");
  }
}

bool WorkerGroup::settle(int wake_fd, milliseconds limit, WorkerEvents& events) {
  look(wake_fd, limit, events);
  bool is_settled = true;
  for (int rank = 0; rank < size(); ++rank) {
    Worker& each = worker(rank);
    const bool is_leaving = each.in_epoch || each.closed || each.is_going;
    if (each.ended || !is_leaving) continue;
    is_settled = false;
    if (looked_ > phase_deadline_ || monitor_->is_silent(rank, looked_)) kill_now(each);
  }
  return is_settled;
}

Status WorkerGroup::form_again() {
  for (int rank = 0; rank < size(); ++rank) {
    if (!worker(rank).ended) continue;
    workers_[static_cast<size_t>(rank)] = TRY(start_worker(rank));
  }
  watch();
  return Ok{};
}

}  // namespace lockstep

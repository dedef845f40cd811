#include "node/worker/worker_control.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace lockstep {
namespace {

// A node that reads nothing for this long counts as gone.
constexpr std::chrono::seconds kUnreadMax{60};
constexpr int kOrphanStatus = 3;

// Without destructors: the computing thread is still at work.
[[noreturn]] void leave() {
  ::_exit(kOrphanStatus);
}

Error nothing_within(std::string_view what, std::chrono::milliseconds limit) {
  return Error{ErrorCode::kTimeout,
               fmt::format("no {} from the node within {} ms", what, limit.count())};
}

}  // namespace

Result<std::unique_ptr<WorkerControl>> WorkerControl::open(UniqueFd fd) {
  WakePipe wake = TRY(WakePipe::create());
  std::unique_ptr<WorkerControl> control(new WorkerControl(std::move(fd), std::move(wake)));
  control->thread_ = std::thread([self = control.get()] { self->read_and_beat(); });
  return control;
}

WorkerControl::WorkerControl(UniqueFd fd, WakePipe wake)
    : fd_(std::move(fd)), wake_(std::move(wake)) {}

WorkerControl::~WorkerControl() {
  finished_.store(true, std::memory_order_relaxed);
  wake_.wake();
  thread_.join();
}

Result<std::string> WorkerControl::wait_setup(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, limit, [this] { return !setup_.empty(); })) {
    return nothing_within("set-up", limit);
  }
  return std::exchange(setup_, {});
}

Result<std::string> WorkerControl::wait_ports(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto is_over = [this] { return cancelled_.load(std::memory_order_relaxed); };
  if (!arrived_.wait_for(lock, limit, [&] { return !ports_.empty() || is_over(); })) {
    return nothing_within("ports of the other ranks", limit);
  }
  if (is_over()) return Error{ErrorCode::kCancelled, "the epoch ended before all ranks had joined"};
  return std::exchange(ports_, {});
}

Result<std::optional<EpochOrder>> WorkerControl::wait_join(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!arrived_.wait_for(lock, limit, [this] { return join_ || is_stopped_; })) {
    return nothing_within("epoch to join", limit);
  }
  if (is_stopped_) return std::optional<EpochOrder>();
  return std::exchange(join_, std::nullopt);
}

void WorkerControl::wait_stop(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, limit, [this] { return is_stopped_; });
}

bool WorkerControl::is_stopped() const {
  std::lock_guard lock(mutex_);
  return is_stopped_;
}

void WorkerControl::attach(Engine* engine) {
  std::lock_guard lock(mutex_);
  engine_ = engine;
}

void WorkerControl::watch(std::shared_ptr<const LinkMeters> meters) {
  std::lock_guard lock(mutex_);
  meters_ = std::move(meters);
}

void WorkerControl::send(Message type, std::string_view payload) {
  std::lock_guard lock(send_mutex_);
  if (!writer_.push(static_cast<uint8_t>(type), payload).ok()) leave();
  const auto deadline = std::chrono::steady_clock::now() + kUnreadMax;
  while (true) {
    if (!writer_.flush(fd_.get()).ok()) leave();
    if (writer_.is_empty()) return;
    if (std::chrono::steady_clock::now() > deadline) leave();
    pollfd room{fd_.get(), POLLOUT, 0};
    ::poll(&room, 1, 1000);
  }
}

void WorkerControl::read_and_beat() {
  using Clock = std::chrono::steady_clock;
  auto next_beat = Clock::now();
  while (!finished_.load(std::memory_order_relaxed)) {
    const auto now = Clock::now();
    if (now >= next_beat) {
      beat();
      next_beat = now + kHeartbeatInterval;
    }
    pollfd polled[2] = {{fd_.get(), POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
    ::poll(polled, 2, static_cast<int>(kHeartbeatInterval.count()));
    while (true) {
      const Result<bool> filled = reader_.fill(fd_.get());
      if (!filled.ok()) leave();  // the node is gone
      if (!filled.value()) break;
      while (true) {
        Result<std::optional<ControlFrame>> frame = reader_.next();
        if (!frame.ok()) leave();
        if (!frame.value()) break;
        handle(std::move(*frame.value()));
      }
    }
  }
}

// Skipped while the node reads nothing: a stopped node is no reason to stop too.
void WorkerControl::beat() {
  const std::optional<PageStoreCounts> pages = page_counts();
  const DraftCounts drafts = draft_counts();
  std::vector<LinkReading> links = link_readings();
  std::unique_lock lock(send_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !writer_.is_empty()) return;
  const Heartbeat now{progress_.ticks.load(std::memory_order_relaxed),
                      progress_.state.load(std::memory_order_relaxed)};
  const auto push = [this](Message type, const std::string& payload) {
    if (!writer_.push(static_cast<uint8_t>(type), payload).ok()) leave();
  };
  push(Message::kHeartbeat, encode_heartbeat(now));
  const LoadBytes bytes{progress_.read_bytes.load(std::memory_order_relaxed),
                        progress_.whole_bytes.load(std::memory_order_relaxed)};
  if (bytes != told_bytes_) {
    push(Message::kBytes, encode_load_bytes(bytes));
    told_bytes_ = bytes;
  }
  if (pages && *pages != told_page_counts_) {
    push(Message::kPages, encode_page_counts(*pages));
    told_page_counts_ = *pages;
  }
  if (drafts.steps > 0 && drafts != told_drafts_) {
    push(Message::kDrafts, encode_draft_counts(drafts));
    told_drafts_ = drafts;
  }
  if (links != told_links_) {
    push(Message::kLinks, encode_link_readings(links));
    told_links_ = std::move(links);
  }
  if (!writer_.flush(fd_.get()).ok()) leave();
}

std::optional<PageStoreCounts> WorkerControl::page_counts() {
  const std::lock_guard lock(mutex_);
  return engine_ == nullptr ? std::nullopt : engine_->page_store_counts();
}

DraftCounts WorkerControl::draft_counts() {
  const std::lock_guard lock(mutex_);
  return engine_ == nullptr ? DraftCounts{} : engine_->draft_counts();
}

// Links that have carried nothing are left out.
std::vector<LinkReading> WorkerControl::link_readings() const {
  const std::lock_guard lock(mutex_);
  std::vector<LinkReading> links;
  for (size_t peer = 0; meters_ && peer < meters_->size(); ++peer) {
    const LinkReading link = (*meters_)[peer].read(static_cast<int32_t>(peer));
    if (link.bytes > 0) links.push_back(link);
  }
  return links;
}

void WorkerControl::handle(ControlFrame frame) {
  switch (static_cast<Message>(frame.type)) {
    case Message::kSetup:
    case Message::kPorts: {
      std::lock_guard lock(mutex_);
      (static_cast<Message>(frame.type) == Message::kSetup ? setup_ : ports_) = frame.payload;
      arrived_.notify_all();
      return;
    }
    case Message::kLeave:
      return end_epoch();
    case Message::kAbort:
      end_epoch();
      [[fallthrough]];
    case Message::kStop: {
      std::lock_guard lock(mutex_);
      is_stopped_ = true;
      is_aborted_ = is_aborted_ || static_cast<Message>(frame.type) == Message::kAbort;
      arrived_.notify_all();
      if (engine_) engine_->stop();
      return;
    }
    default:
      const Status done = static_cast<Message>(frame.type) == Message::kJoin
                              ? handle_join(frame)
                              : handle_request(std::move(frame));
      if (!done.ok()) {
        log_error("worker: {}", done.error().message);
        leave();  // the node and this worker disagree on the protocol
      }
  }
}

// Also notifies the engine: an idle rank 0 does not check the flag.
void WorkerControl::end_epoch() {
  std::lock_guard lock(mutex_);
  cancelled_.store(true, std::memory_order_relaxed);
  arrived_.notify_all();
  if (engine_) engine_->leave();
}

// The node sends this only to a worker that is in no epoch, so nothing uses the flag now.
Status WorkerControl::handle_join(const ControlFrame& frame) {
  EpochSetup setup = TRY(decode_epoch(frame.payload));
  std::lock_guard lock(mutex_);
  join_ = EpochOrder{std::move(setup), reader_.take_fds()};
  ports_.clear();
  cancelled_.store(is_aborted_, std::memory_order_relaxed);
  arrived_.notify_all();
  return Ok{};
}

// A request may have 16 MiB: it is decoded where it is computed, not here between heartbeats.
Status WorkerControl::handle_request(ControlFrame frame) {
  if (static_cast<Message>(frame.type) == Message::kSubmit) {
    const uint64_t id = TRY(decode_request_id(frame.payload));
    std::lock_guard lock(mutex_);
    if (!engine_) return Ok{};
    engine_->submit(id, [payload = std::move(frame.payload)]() -> Result<GenerateRequest> {
      return std::move(TRY(decode_request(payload)).second);
    });
    return Ok{};
  }
  std::lock_guard lock(mutex_);
  if (static_cast<Message>(frame.type) == Message::kCancel) {
    const uint64_t id = TRY(decode_id(frame.payload));
    if (engine_) engine_->cancel(id);
    return Ok{};
  }
  return Error{ErrorCode::kCorrupt, fmt::format("unknown control message {}", frame.type)};
}

}  // namespace lockstep

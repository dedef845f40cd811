#include "node/worker_control.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"

namespace lockstep {
namespace {

// A node that reads nothing for so long is as good as gone.
constexpr std::chrono::seconds kUnreadMax{60};
constexpr int kOrphanStatus = 3;

// Without destructors: the computing thread is still at work.
[[noreturn]] void leave() {
  ::_exit(kOrphanStatus);
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
  return wait_frame(setup_, "set-up", limit);
}

Result<std::string> WorkerControl::wait_ports(std::chrono::milliseconds limit) {
  return wait_frame(ports_, "ports of the other ranks", limit);
}

void WorkerControl::wait_stop(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, limit, [this] { return is_stopped_; });
}

void WorkerControl::attach(Engine* engine) {
  std::lock_guard lock(mutex_);
  engine_ = engine;
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
        const Result<std::optional<ControlFrame>> frame = reader_.next();
        if (!frame.ok()) leave();
        if (!frame.value()) break;
        handle(*frame.value());
      }
    }
  }
}

// Left out while the node reads nothing: a stopped node is no reason to stop as well.
void WorkerControl::beat() {
  std::unique_lock lock(send_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !writer_.is_empty()) return;
  const Heartbeat now{progress_.ticks.load(std::memory_order_relaxed),
                      progress_.state.load(std::memory_order_relaxed)};
  if (!writer_.push(static_cast<uint8_t>(Message::kHeartbeat), encode_heartbeat(now)).ok() ||
      !writer_.flush(fd_.get()).ok()) {
    leave();
  }
}

void WorkerControl::handle(const ControlFrame& frame) {
  switch (static_cast<Message>(frame.type)) {
    case Message::kSetup:
    case Message::kPorts: {
      std::lock_guard lock(mutex_);
      (static_cast<Message>(frame.type) == Message::kSetup ? setup_ : ports_) = frame.payload;
      arrived_.notify_all();
      return;
    }
    case Message::kAbort:
      cancelled_.store(true, std::memory_order_relaxed);
      [[fallthrough]];  // an idle rank 0 does not look at the flag
    case Message::kStop: {
      std::lock_guard lock(mutex_);
      is_stopped_ = true;
      arrived_.notify_all();
      if (engine_) engine_->stop();
      return;
    }
    default:
      if (const Status done = handle_request(frame); !done.ok()) {
        log_error("worker: {}", done.error().message);
        leave();  // the node and we do not speak the same language
      }
  }
}

Status WorkerControl::handle_request(const ControlFrame& frame) {
  std::lock_guard lock(mutex_);
  if (static_cast<Message>(frame.type) == Message::kSubmit) {
    auto request = TRY(decode_request(frame.payload));
    if (engine_) engine_->submit(request.first, std::move(request.second));
    return Ok{};
  }
  if (static_cast<Message>(frame.type) == Message::kCancel) {
    const uint64_t id = TRY(decode_id(frame.payload));
    if (engine_) engine_->cancel(id);
    return Ok{};
  }
  return Error{ErrorCode::kCorrupt, fmt::format("unknown control message {}", frame.type)};
}

Result<std::string> WorkerControl::wait_frame(std::string& slot, std::string_view what,
                                              std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (slot.empty()) {
    if (arrived_.wait_until(lock, deadline) == std::cv_status::timeout && slot.empty()) {
      return Error{ErrorCode::kTimeout,
                   fmt::format("no {} from the node within {} ms", what, limit.count())};
    }
  }
  return std::exchange(slot, {});
}

}  // namespace lockstep

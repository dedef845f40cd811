#include "cluster/join/blocking_connection.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "net/frames/frame_call.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kCancelLook{100};  // how often the flag is checked
// A peer that sends more than requested is broken: it is closed.
constexpr size_t kFramesMax = 16;

}  // namespace

struct BlockingConnection::State {
  explicit State(EventLoop& own) : loop(own) {}

  EventLoop& loop;
  FrameConnection connection;  // belongs to the loop's thread
  PublicKey peer_key{};        // set before call() returns
  Digest session_secret{};

  std::mutex mutex;
  std::condition_variable changed;
  bool is_called = false;
  std::optional<Error> error;
  std::deque<std::string> frames;

  void stop(Error reason) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(reason);
    changed.notify_all();
  }
  void add(std::string frame) {
    const std::lock_guard lock(mutex);
    if (frames.size() >= kFramesMax) {
      error = Error{ErrorCode::kExhausted, "the other end sent too much"};
    } else {
      frames.push_back(std::move(frame));
    }
    changed.notify_all();
  }
};

Result<BlockingConnection> BlockingConnection::call(EventLoop& loop, const TlsIdentity& identity,
                                                    const NetAddress& address,
                                                    const FrameLimits& limits) {
  auto state = std::make_shared<State>(loop);
  FrameCall call;  // belongs to the loop's thread
  TRY(loop.run_and_wait([&] {
    call =
        FrameCall::start(loop, identity, address, limits, [state](Result<FrameConnection> ready) {
          if (!ready.ok()) return state->stop(ready.error());
          state->connection = std::move(ready.value());
          state->peer_key = state->connection.peer_key();
          state->session_secret = state->connection.session_secret();
          state->connection.set_events(
              {.on_frame = [state](std::string frame) { state->add(std::move(frame)); },
               .on_close = [state](Error error) { state->stop(std::move(error)); },
               .on_drained = {}});
          const std::lock_guard lock(state->mutex);
          state->is_called = true;
          state->changed.notify_all();
        });
  }));
  {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->is_called || state->error; });  // bounded by call
  }
  loop.must_run([&] { call.cancel(); });
  const std::lock_guard lock(state->mutex);
  if (!state->is_called) return *state->error;
  return BlockingConnection(std::move(state));
}

BlockingConnection::~BlockingConnection() {
  if (!state_) return;
  state_->loop.must_run([&] {
    FrameConnection last = std::move(state_->connection);
    last.finish();
  });
}

PublicKey BlockingConnection::peer_key() const {
  return state_->peer_key;
}

Digest BlockingConnection::session_secret() const {
  return state_->session_secret;
}

void BlockingConnection::send(std::string frame) {
  state_->loop.post([state = state_, frame = std::move(frame)] { state->connection.send(frame); });
}

Result<std::string> BlockingConnection::receive(std::chrono::milliseconds timeout,
                                                const std::atomic<bool>* cancelled) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::unique_lock lock(state_->mutex);
  for (;;) {
    if (!state_->frames.empty()) {
      std::string frame = std::move(state_->frames.front());
      state_->frames.pop_front();
      return frame;
    }
    if (state_->error) return *state_->error;
    // relaxed: only a flag, it publishes nothing.
    if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kCancelled, "given up"};
    }
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return Error{ErrorCode::kTimeout, "no answer in time"};
    state_->changed.wait_until(
        lock, std::min<std::chrono::steady_clock::time_point>(deadline, now + kCancelLook));
  }
}

}  // namespace lockstep

#include "node/fetch/piece_stream.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kCancelLook{100};  // how often the flag is checked
constexpr size_t kQueuedBytesMax = kPieceBodyBytesMax + (size_t{1} << 20);

}  // namespace

struct PieceStream::State {
  explicit State(EventLoop& own) : loop(own) {}

  EventLoop& loop;
  FrameConnection connection;  // belongs to the loop's thread

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool is_open = false;
  bool is_given_up = false;
  std::optional<Error> error;
  std::deque<std::string> frames;
  size_t queued_bytes = 0;

  void fail(Error reason) {
    const std::lock_guard lock(mutex);
    if (!error) error = std::move(reason);
    changed.notify_all();
  }
  void add(std::string frame) {
    const std::lock_guard lock(mutex);
    queued_bytes += frame.size();
    if (queued_bytes > kQueuedBytesMax) {
      error = Error{ErrorCode::kCorrupt, "the other node sent more than requested"};
    } else {
      frames.push_back(std::move(frame));
    }
    changed.notify_all();
  }
  // Until `is_ready`, an error, the deadline or the flag.
  Status wait(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds timeout,
              const std::atomic<bool>* cancelled, const auto& is_ready) {
    const auto deadline = Clock::now() + timeout;
    while (!is_ready()) {
      if (error) return *error;
      // relaxed: only a flag, it publishes nothing.
      if (cancelled && cancelled->load(std::memory_order_relaxed)) {
        return Error{ErrorCode::kCancelled, "given up"};
      }
      const auto now = Clock::now();
      if (now >= deadline) return Error{ErrorCode::kTimeout, "no answer in time"};
      changed.wait_until(lock, std::min<Clock::time_point>(deadline, now + kCancelLook));
    }
    return Ok{};
  }
};

Result<std::unique_ptr<PieceStream>> PieceStream::open(EventLoop& loop, PieceNetwork& network,
                                                       const NodeId& node, Times times,
                                                       const std::atomic<bool>* cancelled) {
  auto state = std::make_shared<State>(loop);
  network.open_stream(
      node, {.kind = kPieceChannel, .purpose = {}}, [state](Result<FrameConnection> ready) {
        if (!ready.ok()) return state->fail(ready.error());
        state->connection = ready.value();
        ready.value().set_events(
            {.on_frame = [state](std::string frame) { state->add(std::move(frame)); },
             .on_close = [state](Error error) { state->fail(std::move(error)); },
             .on_drained = {}});
        {
          const std::lock_guard lock(state->mutex);
          state->is_open = true;
          state->changed.notify_all();
          if (!state->is_given_up) return;
        }
        ready.value().close();
        state->connection = {};
      });
  std::unique_lock lock(state->mutex);
  const Status opened =
      state->wait(lock, times.open, cancelled, [&] { return state->is_open || state->error; });
  if (!opened.ok() || state->error) {
    state->is_given_up = true;
    return opened.ok() ? *state->error : opened.error();
  }
  lock.unlock();
  return std::unique_ptr<PieceStream>(new PieceStream(std::move(state), times));
}

PieceStream::~PieceStream() {
  state_->loop.post([state = state_] {
    FrameConnection last = std::move(state->connection);
    last.close();
  });
}

bool PieceStream::has_failed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->error.has_value();
}

Result<PieceStream::Reply> PieceStream::ask(const PieceAsk& ask, size_t body_bytes_max,
                                            const std::atomic<bool>* cancelled) {
  state_->loop.post(
      [state = state_, frame = encode_piece_ask(ask)] { state->connection.send(frame); });
  Reply reply;
  reply.answer = TRY(decode_piece_answer(TRY(receive(times_.answer, cancelled))));
  if (reply.answer.body_bytes > body_bytes_max) {
    return Error{ErrorCode::kCorrupt, "the other node sent more than requested"};
  }
  reply.body.reserve(reply.answer.body_bytes);
  while (reply.body.size() < reply.answer.body_bytes) {
    const std::string frame = TRY(receive(times_.chunk, cancelled));
    const std::string_view part = TRY(decode_piece_chunk(frame));
    if (part.size() > reply.answer.body_bytes - reply.body.size()) {
      return Error{ErrorCode::kCorrupt, "the other node sent more than it announced"};
    }
    reply.body += part;
  }
  return reply;
}

Result<std::string> PieceStream::receive(std::chrono::milliseconds timeout,
                                         const std::atomic<bool>* cancelled) {
  std::unique_lock lock(state_->mutex);
  TRY(state_->wait(lock, timeout, cancelled, [&] { return !state_->frames.empty(); }));
  std::string frame = std::move(state_->frames.front());
  state_->frames.pop_front();
  state_->queued_bytes -= frame.size();
  return frame;
}

std::unique_ptr<PieceStream> PieceStreamPool::take(const NodeId& node) {
  const std::lock_guard lock(mutex_);
  auto& streams = idle_[node];
  while (!streams.empty()) {
    auto stream = std::move(streams.back());
    streams.pop_back();
    if (!stream->has_failed()) return stream;
  }
  return nullptr;
}

void PieceStreamPool::give(const NodeId& node, std::unique_ptr<PieceStream> stream) {
  const std::lock_guard lock(mutex_);
  auto& streams = idle_[node];
  if (streams.size() < kIdleMax && !stream->has_failed()) streams.push_back(std::move(stream));
}

void PieceStreamPool::clear() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

}  // namespace lockstep

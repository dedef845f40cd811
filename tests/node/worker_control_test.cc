// A worker's end of its control channel, in this process, with the test as the node.
#include "node/worker/worker_control.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace lockstep;
using namespace std::chrono_literals;

namespace {

constexpr auto kHeartbeatWait = 30s;  // for a busy machine

// Keeps what it is given; the test is the thread that runs it.
class KeepingEngine final : public Engine {
 public:
  const LoadReport& report() const override { return report_; }
  void submit(uint64_t request, MakeRequest make) override {
    const std::lock_guard lock(mutex_);
    submitted_.emplace_back(request, std::move(make));
    changed_.notify_all();
  }
  void cancel(uint64_t request) override {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(request);
    changed_.notify_all();
  }
  void stop() override {}
  void leave() override {}
  Status run(const EventSink&) override { return Ok{}; }
  Status rejoin(Group) override { return Ok{}; }

  // Nullopt: not within the time limit.
  std::optional<std::pair<uint64_t, MakeRequest>> next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kHeartbeatWait, [&] { return !submitted_.empty(); })) return {};
    auto first = std::move(submitted_.front());
    submitted_.erase(submitted_.begin());
    return first;
  }
  bool waits_for_cancel(uint64_t request) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kHeartbeatWait,
                             [&] { return !cancelled_.empty() && cancelled_.back() == request; });
  }

 private:
  LoadReport report_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<uint64_t, MakeRequest>> submitted_;
  std::vector<uint64_t> cancelled_;
};

struct Attached {
  Attached() {
    auto pair = control_socket_pair();
    REQUIRE(pair.ok());
    node = ControlChannel(std::move(pair.value().first));
    auto opened = WorkerControl::open(std::move(pair.value().second));
    REQUIRE(opened.ok());
    control = std::move(opened.value());
    control->attach(&engine);
  }
  // The channel must not end before the worker, which would end this process.
  ~Attached() { control.reset(); }

  void send(Message type, const std::string& payload) {
    REQUIRE(node.send(static_cast<uint8_t>(type), payload).ok());
    const auto deadline = std::chrono::steady_clock::now() + kHeartbeatWait;
    while (node.has_outgoing()) {
      REQUIRE(std::chrono::steady_clock::now() < deadline);
      pollfd room{node.fd(), POLLOUT, 0};
      ::poll(&room, 1, 100);
      REQUIRE(node.flush().ok());
    }
  }
  bool beats() {
    const auto deadline = std::chrono::steady_clock::now() + kHeartbeatWait;
    while (std::chrono::steady_clock::now() < deadline) {
      pollfd polled{node.fd(), POLLIN, 0};
      ::poll(&polled, 1, 100);
      const auto filled = node.fill();
      if (!filled.ok()) return false;
      auto frame = node.next();
      if (frame.ok() && frame.value()) return frame.value()->type == uint8_t(Message::kHeartbeat);
    }
    return false;
  }

  KeepingEngine engine;
  ControlChannel node{UniqueFd()};
  std::unique_ptr<WorkerControl> control;
};

GenerateRequest long_request() {
  GenerateRequest request;
  request.prompt.assign(3'000'000, 7);
  return request;
}

}  // namespace

TEST_CASE("a request is decoded by the engine's thread, and heartbeats do not wait for that") {
  Attached worker;
  const GenerateRequest request = long_request();
  worker.send(Message::kSubmit, encode_request(~uint64_t{0}, request));
  const auto submitted = worker.engine.next();
  REQUIRE(submitted);
  CHECK(submitted->first == ~uint64_t{0});
  CHECK(worker.beats());  // nobody has decoded it
  const auto made = submitted->second();
  REQUIRE(made.ok());
  CHECK(made.value().prompt == request.prompt);
}

TEST_CASE("a request that is invalid costs itself, not the worker") {
  Attached worker;
  worker.send(Message::kSubmit, std::string(8, '\3') + "no request");
  const auto submitted = worker.engine.next();
  REQUIRE(submitted);
  CHECK(submitted->second().error().code == ErrorCode::kCorrupt);
  worker.send(Message::kCancel, encode_id(7));
  CHECK(worker.engine.waits_for_cancel(7));
  CHECK(worker.beats());
}

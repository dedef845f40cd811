#include "access/request_workers.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

constexpr std::chrono::seconds kGatePatience{10};

// Work that waits until the test releases it.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait_for(lock, kGatePatience, [&] { return is_open_; });
  }
  bool waits_for(int inside) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kGatePatience, [&] { return inside_ == inside; });
  }
  int inside() {
    std::lock_guard lock(mutex_);
    return inside_;
  }
  void open() {
    std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool is_open_ = false;
};

RequestJob job(uint64_t caller, std::function<void()> run) {
  return {.caller = caller, .run = std::move(run), .on_failure = {}};
}

// A job of `caller` that waits at the gate.
RequestJob at_gate(uint64_t caller, Gate& gate) {
  return job(caller, [&gate] { gate.pass(); });
}

// Runs until its work is cancelled, like a loop deep in a parser.
void run_until_over() {
  const auto patience_ends = std::chrono::steady_clock::now() + kGatePatience;
  while (!Work::is_over() && std::chrono::steady_clock::now() < patience_ends) {
  }
}

}  // namespace

TEST_CASE("jobs run concurrently, and beyond the limit they are refused") {
  constexpr int kThreads = 2;
  Gate gate;
  RequestWorkers workers(kThreads);
  for (uint64_t caller = 0; caller < kThreads; ++caller) {
    CHECK(workers.start(at_gate(caller, gate)) != nullptr);
  }
  REQUIRE(gate.waits_for(kThreads));
  for (size_t i = 0; i < RequestWorkers::kWaitingMax; ++i) {
    REQUIRE(workers.start(at_gate(i, gate)) != nullptr);
  }
  CHECK(workers.waiting() == RequestWorkers::kWaitingMax);
  CHECK(workers.start(job(0, [] {})) == nullptr);
  gate.open();
  CHECK(gate.waits_for(kThreads + static_cast<int>(RequestWorkers::kWaitingMax)));
}

TEST_CASE("one caller has a quarter of the queue") {
  Gate gate;
  RequestWorkers workers(1);
  CHECK(workers.start(at_gate(1, gate)) != nullptr);
  REQUIRE(gate.waits_for(1));
  for (size_t i = 0; i < RequestWorkers::kWaitingOfCallerMax; ++i) {
    REQUIRE(workers.start(job(1, [] {})) != nullptr);
  }
  CHECK(workers.start(job(1, [] {})) == nullptr);
  CHECK(workers.start(job(2, [] {})) != nullptr);
  CHECK(workers.waiting() == RequestWorkers::kWaitingMax / 4 + 1);
  gate.open();
}

TEST_CASE("at the end running jobs are cancelled and queued ones dropped") {
  Gate gate;
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  bool was_cancelled = false;
  {
    RequestWorkers workers(1);
    workers.start(job(1, [&] {
      gate.pass();
      run_until_over();
      was_cancelled = Work::check().error().code == ErrorCode::kCancelled;
    }));
    REQUIRE(gate.waits_for(1));
    workers.start(job(1, [alive = std::move(alive)] { ++*alive; }));
    gate.open();
  }
  CHECK(was_cancelled);
  CHECK(watched.expired());
}

TEST_CASE("one caller leaves a thread to the others") {
  Gate gate;
  RequestWorkers workers(3);
  for (int i = 0; i < 4; ++i) workers.start(at_gate(1, gate));
  REQUIRE(gate.waits_for(2));
  CHECK(workers.waiting() == 2);
  workers.start(at_gate(2, gate));
  CHECK(gate.waits_for(3));
  CHECK(workers.waiting() == 2);
  gate.open();
  CHECK(gate.waits_for(5));
}

TEST_CASE("waiting callers take turns, however many requests each has") {
  Gate gate;
  Gate end;
  std::vector<uint64_t> order;
  RequestWorkers workers(1);
  workers.start(at_gate(9, gate));
  REQUIRE(gate.waits_for(1));
  for (const uint64_t caller : {1, 1, 1, 2, 3}) {
    workers.start(job(caller, [&order, &end, caller] {
      order.push_back(caller);
      if (order.size() == 5) end.pass();
    }));
  }
  gate.open();
  REQUIRE(end.waits_for(1));
  CHECK(order == std::vector<uint64_t>{1, 2, 3, 1, 1});
  end.open();
}

TEST_CASE("a cancelled request is dropped before it begins") {
  Gate gate;
  RequestWorkers workers(1);
  workers.start(at_gate(1, gate));
  REQUIRE(gate.waits_for(1));
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  const auto work = workers.start(job(2, [alive = std::move(alive)] { ++*alive; }));
  REQUIRE(work != nullptr);
  workers.cancel(work);
  CHECK(watched.expired());
  CHECK(workers.waiting() == 0);
  workers.cancel(work);  // a second time has no effect
  gate.open();
}

TEST_CASE("a running request is cancelled when its client is gone") {
  Gate begun;
  Gate ended;
  RequestWorkers workers(1);
  const auto work = workers.start(job(1, [&] {
    begun.pass();
    run_until_over();
    ended.pass();
  }));
  REQUIRE(begun.waits_for(1));
  begun.open();
  workers.cancel(work);
  CHECK(ended.waits_for(1));
  CHECK(work->is_cancelled());
  ended.open();
}

TEST_CASE("an exception fails only the request that throws it") {
  Gate gate;
  std::vector<ApiError> told;
  RequestWorkers workers(1);
  const auto failing = [&](std::function<void()> run) {
    RequestJob failing = job(1, std::move(run));
    failing.on_failure = [&told](const ApiError& error) { told.push_back(error); };
    workers.start(std::move(failing));
  };
  failing([] { throw std::bad_alloc(); });
  failing([] { throw std::runtime_error("the vector is too long"); });
  workers.start(job(1, [] { throw std::bad_alloc(); }));  // without a notification
  workers.start(at_gate(1, gate));
  REQUIRE(gate.waits_for(1));
  REQUIRE(told.size() == 2);
  CHECK(told[0].status == 503);
  CHECK(told[1].status == 500);
  CHECK(told[1].message == "the request failed inside the server: the vector is too long");
  gate.open();
}

TEST_CASE("the running time of the oldest request is known") {
  Gate gate;
  RequestWorkers workers(2);
  const auto now = RequestWorkers::Clock::now();
  CHECK(workers.oldest_busy(now) == RequestWorkers::Clock::duration::zero());
  workers.start(at_gate(1, gate));
  REQUIRE(gate.waits_for(1));
  const auto began = RequestWorkers::Clock::now();
  CHECK(workers.oldest_busy(began + std::chrono::hours(1)) >= std::chrono::hours(1));
  gate.open();
}

TEST_CASE("the number of threads depends on the machine") {
  CHECK(RequestWorkers::thread_count(1) == RequestWorkers::kThreadsMin);
  CHECK(RequestWorkers::thread_count(16) == 8);
  CHECK(RequestWorkers::thread_count(384) == RequestWorkers::kThreadsMax);
}

}  // namespace lockstep

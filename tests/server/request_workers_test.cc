#include "server/request_workers.h"

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

namespace lockstep {
namespace {

// Work that waits until the test lets it go.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait_for(lock, kPatience, [&] { return is_open_; });
  }
  bool waits_for(int inside) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return inside_ == inside; });
  }
  void open() {
    std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }

 private:
  static constexpr std::chrono::seconds kPatience{10};
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool is_open_ = false;
};

}  // namespace

TEST_CASE("work runs beside other work, and beyond the limit it is refused") {
  Gate gate;
  RequestWorkers workers;
  for (int i = 0; i < RequestWorkers::kThreads; ++i) CHECK(workers.run([&] { gate.pass(); }));
  REQUIRE(gate.waits_for(RequestWorkers::kThreads));
  for (size_t i = 0; i < RequestWorkers::kWaitingMax; ++i) {
    REQUIRE(workers.run([&] { gate.pass(); }));
  }
  CHECK_FALSE(workers.run([] {}));
  gate.open();
  CHECK(gate.waits_for(RequestWorkers::kThreads + static_cast<int>(RequestWorkers::kWaitingMax)));
}

TEST_CASE("at the end what has begun is finished and what has not is dropped") {
  Gate gate;
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watched = alive;
  {
    RequestWorkers workers;
    for (int i = 0; i < RequestWorkers::kThreads; ++i) workers.run([&] { gate.pass(); });
    REQUIRE(gate.waits_for(RequestWorkers::kThreads));
    workers.run([alive = std::move(alive)] { ++*alive; });
    gate.open();
  }
  CHECK(watched.expired());
}

}  // namespace lockstep

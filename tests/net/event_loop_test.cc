// Work that another thread waits for: its limit, and what happens to it after that.
#include "net/event_loop.h"

#include <doctest/doctest.h>

#include <future>
#include <memory>

using namespace lockstep;

namespace {

// Keeps a loop busy until it is destroyed, which waits for nothing.
class BusyLoop {
 public:
  BusyLoop() {
    std::promise<void> begun;
    loop->post([this, &begun] {
      begun.set_value();
      ended_.get_future().wait();
    });
    begun.get_future().wait();
  }
  ~BusyLoop() { end(); }

  void end() {
    if (!std::exchange(is_ended_, true)) ended_.set_value();
  }

  const std::unique_ptr<EventLoop> loop = EventLoop::start();

 private:
  std::promise<void> ended_;
  bool is_ended_ = false;
};

}  // namespace

TEST_CASE("work that a loop does not get to in time is an error and never runs") {
  BusyLoop busy;
  auto has_run = std::make_shared<bool>(false);
  {
    bool on_this_stack = false;
    const Status late =
        busy.loop->run_and_wait([&on_this_stack, has_run] { on_this_stack = *has_run = true; },
                                std::chrono::milliseconds(20));
    REQUIRE(!late.ok());
    CHECK(late.error().code == ErrorCode::kTimeout);
    CHECK(late.error().message == "the event loop did not get to its work in 20 ms");
    CHECK(!on_this_stack);
  }
  busy.end();
  CHECK(busy.loop->run_and_wait([] {}).ok());
  CHECK(!*has_run);
}

TEST_CASE("work that has begun is waited for beyond its limit") {
  const auto loop = EventLoop::start();
  std::promise<void> begun, ended;
  bool has_run = false;
  auto waiting = std::async(std::launch::async, [&] {
    return loop->run_and_wait(
        [&] {
          begun.set_value();
          ended.get_future().wait();
          has_run = true;
        },
        std::chrono::milliseconds(1));
  });
  // It may also have been abandoned, if this machine is too slow for a millisecond.
  const bool is_running =
      begun.get_future().wait_for(std::chrono::seconds(1)) == std::future_status::ready;
  if (is_running) {
    CHECK(waiting.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout);
  }
  ended.set_value();
  CHECK(waiting.get().ok() == is_running);
  CHECK(has_run == is_running);
}

TEST_CASE("an exception of work is the error of the thread that waits for it") {
  const auto loop = EventLoop::start();
  const Status thrown = loop->run_and_wait([] { throw std::bad_alloc(); });
  REQUIRE(!thrown.ok());
  CHECK(thrown.error().code == ErrorCode::kExhausted);
  CHECK(loop->run_and_wait([] {}).ok());
}

#include "engine/schedule/fair_queue.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <vector>

using namespace lockstep;

namespace {

template <class T>
std::vector<T> drain(FairQueue<T>& queue) {
  std::vector<T> items;
  while (!queue.empty()) items.push_back(queue.pop());
  return items;
}

}  // namespace

TEST_CASE("clients take turns, each in the order of its own items") {
  FairQueue<int> queue;
  for (int i = 0; i < 4; ++i) queue.push(10 + i, 1, 0);
  queue.push(20, 2, 0);
  queue.push(30, 3, 0);
  queue.push(31, 3, 0);
  CHECK(queue.size() == 7);
  CHECK(queue.size_of(1) == 4);
  CHECK(queue.size_of(9) == 0);
  CHECK(drain(queue) == std::vector<int>{10, 20, 30, 11, 31, 12, 13});
}

TEST_CASE("one client alone is served in order") {
  FairQueue<int> queue;
  for (int i = 0; i < 5; ++i) queue.push(i, 0, 0);
  CHECK(drain(queue) == std::vector<int>{0, 1, 2, 3, 4});
}

TEST_CASE("a late client waits for one turn of each other client, not for their queues") {
  FairQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.push(i, 7, 0);
  for (int i = 0; i < 10; ++i) queue.pop();
  queue.push(1000, 3, 0);
  queue.push(2000, 9, 0);
  CHECK(queue.pop() == 2000);
  CHECK(queue.pop() == 1000);
  CHECK(queue.pop() == 10);
}

TEST_CASE("higher priorities go first, and clients take turns within each priority") {
  FairQueue<int> queue;
  queue.push(1, 1, 0);
  queue.push(2, 1, -5);
  queue.push(3, 1, 9);
  queue.push(4, 1, 9);
  queue.push(5, 2, 9);
  CHECK(queue.size_of(1) == 4);
  CHECK(drain(queue) == std::vector<int>{3, 5, 4, 1, 2});
}

TEST_CASE("a low priority is not starved by a higher one that never ends") {
  constexpr int kTurns = FairQueue<int>::kHighTurns;
  // Items waiting below a priority 5 that always has an item (named 0), as priority, client, name;
  // and the order in which they come out.
  struct Row {
    const char* what;
    std::vector<std::array<int, 3>> below;
    std::vector<int> order;
  };
  const Row rows[] = {
      {"one item", {{0, 1, 1}}, {1}},
      {"who came first goes first, whatever its priority", {{-9, 1, 1}, {4, 1, 2}}, {1, 2}},
      {"a priority keeps the order of one client", {{0, 1, 1}, {0, 1, 2}, {0, 1, 3}}, {1, 2, 3}},
      {"clients of a priority have turns", {{0, 1, 1}, {0, 1, 2}, {0, 2, 3}}, {1, 3, 2}},
      {"priorities take turns by their first items",
       {{0, 1, 1}, {1, 1, 2}, {0, 1, 3}, {1, 1, 4}},
       {1, 2, 3, 4}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    FairQueue<int> queue;
    for (const auto& [priority, client, name] : row.below) queue.push(name, client, priority);
    std::vector<int> came;
    std::vector<int> turns;
    bool has_higher = false;
    for (int turn = 0; came.size() < row.order.size() && turn < 1000; ++turn) {
      if (!has_higher) queue.push(0, 7, 5);
      const int item = queue.pop();
      has_higher = item != 0;
      if (item == 0) continue;
      came.push_back(item);
      turns.push_back(turn);
    }
    CHECK(came == row.order);
    for (size_t i = 0; i < turns.size(); ++i) {
      CHECK(turns[i] == static_cast<int>(i) * (kTurns + 1) + kTurns);
    }
  }
}

TEST_CASE("turns are counted only while a lower priority waits") {
  FairQueue<int> queue;
  for (int i = 0; i < 3 * FairQueue<int>::kHighTurns; ++i) {
    queue.push(0, 1, 5);
    queue.pop();
  }
  queue.push(1, 1, 0);
  queue.push(0, 1, 5);
  CHECK(drain(queue) == std::vector<int>{0, 1});
}

TEST_CASE("an item can be removed anywhere in the queue") {
  FairQueue<std::unique_ptr<int>> queue;
  queue.push(std::make_unique<int>(1), 1, 0);
  queue.push(std::make_unique<int>(2), 1, 0);
  queue.push(std::make_unique<int>(3), 2, 4);
  const auto is = [](int value) {
    return [value](const std::unique_ptr<int>& item) { return *item == value; };
  };
  CHECK(queue.erase_if(is(1)));
  CHECK(!queue.erase_if(is(1)));
  CHECK(queue.erase_if(is(3)));
  CHECK(queue.size() == 1);
  CHECK(queue.size_of(2) == 0);
  CHECK(*queue.pop() == 2);
  CHECK(queue.empty());
}

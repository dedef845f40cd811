#include "engine/fair_queue.h"

#include <doctest/doctest.h>

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

TEST_CASE("clients have turns, each in the order of its own items") {
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

TEST_CASE("a client that comes late waits for one turn of each other, not for their queues") {
  FairQueue<int> queue;
  for (int i = 0; i < 100; ++i) queue.push(i, 7, 0);
  for (int i = 0; i < 10; ++i) queue.pop();
  queue.push(1000, 3, 0);
  queue.push(2000, 9, 0);
  CHECK(queue.pop() == 2000);
  CHECK(queue.pop() == 1000);
  CHECK(queue.pop() == 10);
}

TEST_CASE("higher priorities go first, and every priority has turns of its own") {
  FairQueue<int> queue;
  queue.push(1, 1, 0);
  queue.push(2, 1, -5);
  queue.push(3, 1, 9);
  queue.push(4, 1, 9);
  queue.push(5, 2, 9);
  CHECK(queue.size_of(1) == 4);
  CHECK(drain(queue) == std::vector<int>{3, 5, 4, 1, 2});
}

TEST_CASE("an item is taken out of the middle, wherever it waits") {
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

// FairQueue: the waiting items of several clients. Within the highest waiting priority the clients
// take turns, one item at a time, each in the order of its pushes; so a client with a thousand
// requests does not delay one with a single request. Lower priorities wait while a higher one does,
// but not forever: after kHighTurns turns of the highest in a row, the lower priority with the
// oldest item has one. So an item waits for at most kHighTurns + 1 turns of the queue per turn of
// older items and of the clients of its priority. Counted in turns and not in time, so that the
// order depends only on pushes and pops. Used by the scheduler; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

namespace lockstep {

template <class T>
class FairQueue {
 public:
  static constexpr int kHighTurns = 15;  // in a row, while lower priorities wait

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  // Items of one client, of all priorities.
  size_t size_of(uint64_t client) const {
    size_t count = 0;
    for (const auto& [priority, level] : levels_) {
      const auto found = level.lines.find(client);
      if (found != level.lines.end()) count += found->second.size();
    }
    return count;
  }

  void push(T item, uint64_t client, int32_t priority) {
    levels_[priority].lines[client].push_back({next_order_++, std::move(item)});
    ++size_;
  }

  // The queue must not be empty.
  T pop() {
    const auto chosen = next_level();
    Level& level = chosen->second;
    auto line = level.lines.upper_bound(level.last_client);
    if (line == level.lines.end()) line = level.lines.begin();
    T item = std::move(line->second.front().item);
    line->second.pop_front();
    level.last_client = line->first;
    if (line->second.empty()) level.lines.erase(line);
    if (level.lines.empty()) levels_.erase(chosen);
    --size_;
    return item;
  }

  // Removes the first item for which `condition` is true; false if there is none.
  template <class Condition>
  bool erase_if(Condition condition) {
    for (auto level = levels_.begin(); level != levels_.end(); ++level) {
      auto& lines = level->second.lines;
      for (auto line = lines.begin(); line != lines.end(); ++line) {
        auto& items = line->second;
        const auto found = std::find_if(items.begin(), items.end(), [&](const Waiting& waiting) {
          return condition(waiting.item);
        });
        if (found == items.end()) continue;
        items.erase(found);
        if (items.empty()) lines.erase(line);
        if (lines.empty()) levels_.erase(level);
        --size_;
        return true;
      }
    }
    return false;
  }

 private:
  struct Waiting {
    uint64_t order;  // of the push
    T item;
  };
  struct Level {
    std::map<uint64_t, std::deque<Waiting>> lines;  // by client, none of them empty
    uint64_t last_client = UINT64_MAX;              // the client that had the last turn

    uint64_t first_order() const {
      uint64_t first = UINT64_MAX;
      for (const auto& [client, line] : lines) first = std::min(first, line.front().order);
      return first;
    }
  };
  using Levels = std::map<int32_t, Level, std::greater<>>;

  // The level that has the next turn.
  typename Levels::iterator next_level() {
    const auto highest = levels_.begin();
    if (levels_.size() > 1 && high_turns_ < kHighTurns) {
      ++high_turns_;
      return highest;
    }
    high_turns_ = 0;
    if (levels_.size() == 1) return highest;
    return std::min_element(std::next(highest), levels_.end(), [](const auto& a, const auto& b) {
      return a.second.first_order() < b.second.first_order();
    });
  }

  Levels levels_;       // highest priority first, none of them empty
  int high_turns_ = 0;  // in a row, of a highest priority that others wait for
  uint64_t next_order_ = 0;
  size_t size_ = 0;
};

}  // namespace lockstep

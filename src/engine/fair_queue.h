// FairQueue: who waits to run, of several clients. Of the highest priority that waits each client
// has its turn, one item at a time, in the order in which its items came; so a client with
// a thousand requests does not keep one with a single request waiting. Lower priorities wait until
// no higher one does. Used by the scheduler; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

namespace lockstep {

template <class T>
class FairQueue {
 public:
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
    levels_[priority].lines[client].push_back(std::move(item));
    ++size_;
  }

  // The queue must not be empty.
  T pop() {
    auto& [priority, level] = *levels_.begin();
    auto line = level.lines.upper_bound(level.last_client);
    if (line == level.lines.end()) line = level.lines.begin();
    T item = std::move(line->second.front());
    line->second.pop_front();
    level.last_client = line->first;
    if (line->second.empty()) level.lines.erase(line);
    if (level.lines.empty()) levels_.erase(levels_.begin());
    --size_;
    return item;
  }

  // Takes the first item out for which `condition` is true; false if there is none.
  template <class Condition>
  bool erase_if(Condition condition) {
    for (auto level = levels_.begin(); level != levels_.end(); ++level) {
      auto& lines = level->second.lines;
      for (auto line = lines.begin(); line != lines.end(); ++line) {
        auto& items = line->second;
        const auto found = std::find_if(items.begin(), items.end(), condition);
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
  struct Level {
    std::map<uint64_t, std::deque<T>> lines;  // by client, none of them empty
    uint64_t last_client = UINT64_MAX;        // who had the last turn
  };

  std::map<int32_t, Level, std::greater<>> levels_;  // highest priority first, none of them empty
  size_t size_ = 0;
};

}  // namespace lockstep

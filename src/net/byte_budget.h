// ByteBudget: limits the total bytes of all request bodies, or of all answers that clients have not
// read yet. ByteHold: the share of one of them while it is in memory. Part of the budget is
// reserved for preferred callers, and no caller gets all of it. Used by HttpServer. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace lockstep {

class ByteBudget {
 public:
  struct Limits {
    size_t bytes_max;
    // The first bytes of each hold are not counted, so that short messages always get through: the
    // number of connections limits their total.
    size_t free_bytes;
    size_t reserved_bytes;  // of bytes_max, only for preferred callers
    size_t of_caller_max;
  };

  explicit ByteBudget(const Limits& limits) : limits_(limits) {}
  const Limits& limits() const { return limits_; }

 private:
  friend class ByteHold;
  const Limits limits_;
  std::mutex mutex_;  // all below
  size_t bytes_ = 0;
  std::unordered_map<uint64_t, size_t> of_caller_;  // only callers that hold some
};

class ByteHold {
 public:
  struct Caller {
    uint64_t id = 0;
    bool is_preferred = false;
  };
  enum class Room { kYes, kAllTaken, kCallerHasItsPart };

  ByteHold(std::shared_ptr<ByteBudget> budget, Caller caller)
      : budget_(std::move(budget)), caller_(caller) {}
  ~ByteHold() { set(0); }
  ByteHold(const ByteHold&) = delete;
  ByteHold& operator=(const ByteHold&) = delete;

  // Sets the bytes held. Other than kYes: there is no room, and the hold is unchanged.
  Room set(size_t bytes);

 private:
  const std::shared_ptr<ByteBudget> budget_;
  const Caller caller_;
  size_t held_ = 0;
};

}  // namespace lockstep

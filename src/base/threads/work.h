// Work: how much one request may cost the thread that processes it, and whether it is still wanted.
// A thread carries its work (Work::Scope), so that an inner loop (a template, a grammar, a
// tokenizer, a conversion) calls Work::check() without an extra parameter. The budget is that
// thread's processor time, so that a busy machine refuses nothing that a quiet one accepts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/result.h"

namespace lockstep {

class Work {
 public:
  explicit Work(std::chrono::milliseconds processor_time_max) : limit_(processor_time_max) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Makes the next check() fail: the client has gone, or the program ends. Any thread.
  void cancel() { is_cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return is_cancelled_.load(std::memory_order_relaxed); }

  // Makes `work` the calling thread's own for the scope's lifetime; scopes nest.
  class Scope {
   public:
    explicit Scope(Work& work);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Work* const outer_;
  };

  // For the calling thread's work: kCancelled, or kExhausted once the budget is spent; Ok on a
  // thread without work. Some 2 ns; the clock is read every kChecksPerLook calls, so the time
  // between two calls should be at most some microseconds.
  static Status check();
  // For loops that return no Status: the loop stops, and its caller gets the reason from check().
  static bool is_over() { return !check().ok(); }

  static constexpr uint32_t kChecksPerLook = 64;

 private:
  Status look();

  const std::chrono::milliseconds limit_;
  // Only a flag: orders no other data.
  std::atomic<bool> is_cancelled_{false};
  uint32_t checks_ = 0;  // used only by the carrying thread, like the members below
  bool is_spent_ = false;
  std::chrono::nanoseconds started_{-1};  // of the thread's processor time
};

}  // namespace lockstep

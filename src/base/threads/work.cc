#include "base/threads/work.h"

#include <fmt/core.h>
#include <time.h>

namespace lockstep {
namespace {

thread_local Work* carried = nullptr;

std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Work::Scope::Scope(Work& work) : outer_(carried) {
  carried = &work;
  if (work.started_.count() < 0) work.started_ = processor_time();
}

Work::Scope::~Scope() {
  carried = outer_;
}

Status Work::check() {
  Work* const work = carried;
  if (work == nullptr) return Ok{};
  const bool is_due = ++work->checks_ % kChecksPerLook == 0;
  if (!is_due && !work->is_spent_ && !work->is_cancelled()) return Ok{};
  return work->look();
}

Status Work::look() {
  if (is_cancelled()) {
    return Error{ErrorCode::kCancelled, "the request was cancelled"};
  }
  is_spent_ = is_spent_ || processor_time() - started_ > limit_;
  if (!is_spent_) return Ok{};
  return Error{
      ErrorCode::kExhausted,
      fmt::format(
          "reading the request takes more than {} ms of processor time; make it smaller or simpler",
          limit_.count())};
}

}  // namespace lockstep

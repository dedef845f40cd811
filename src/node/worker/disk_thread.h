// DiskThread: a thread for disk work that may hang for any time: a disconnected network drive, a
// dying disk. Callers wait for an event, never for the disk; neither does the destructor. With
// several threads a hanging job blocks no other. Used by the cluster's driver, models and planner.
// Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace lockstep {

class DiskThread {
 public:
  static constexpr size_t kJobsMax = 256;  // waiting

  // A job runs on the thread and may outlive this object, so it owns everything it needs. The
  // function it returns runs there afterwards, but never after this object is destroyed; it must
  // not wait. A job that throws is logged and dropped.
  using Then = std::function<void()>;
  using Job = std::function<Then()>;

  // A job that finds no idle thread starts one, `threads_max` at most; one stays.
  explicit DiskThread(size_t threads_max = 1);
  // Drops waiting jobs. Waits for running ones, two seconds at most; then abandons them.
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // Jobs start in call order; false: kJobsMax are waiting, or no thread can be started.
  [[nodiscard]] bool post(Job job);

 private:
  struct Shared;
  static bool add_thread(const std::shared_ptr<Shared>& shared);
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace lockstep

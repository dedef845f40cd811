// DiskThread: a thread for work on disks, which may hang for as long as they like: a network drive
// that is gone, a disk that is dying. Whoever waits for it waits for an event, never for the disk;
// even its end does not. Used by the cluster's driver and planner. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace lockstep {

class DiskThread {
 public:
  static constexpr size_t kJobsMax = 256;  // that wait

  // A job runs on the thread and may outlive this object, so it holds all it needs. What it returns
  // is run there afterwards, but never once this object is gone; it must not wait.
  using Then = std::function<void()>;
  using Job = std::function<Then()>;

  DiskThread();
  // Jobs that wait are dropped. One that runs is waited for, two seconds at most; then it is left
  // alone.
  ~DiskThread();
  DiskThread(const DiskThread&) = delete;
  DiskThread& operator=(const DiskThread&) = delete;

  // In the order of the calls; false: kJobsMax wait already.
  [[nodiscard]] bool post(Job job);

 private:
  struct Shared;
  static void run(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

}  // namespace lockstep

// RequestWorkers: threads that read requests and make prompts of them (JSON, template, tokenizer),
// so that a long prompt keeps neither the event loop nor a short one waiting. Any thread may call
// run().
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lockstep {

class RequestWorkers {
 public:
  static constexpr int kThreads = 2;
  static constexpr size_t kWaitingMax = 256;

  RequestWorkers();
  ~RequestWorkers();  // drops what has not begun

  // False: kWaitingMax wait already.
  bool run(std::function<void()> work);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stopping_ = false;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;  // last: they use all of the above
};

}  // namespace lockstep

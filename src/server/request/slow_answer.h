// SlowAnswer: something that takes seconds and may hang, made by one thread at a time and shared by
// all who ask for it meanwhile. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "node/worker/disk_thread.h"

namespace lockstep {

class SlowAnswer {
 public:
  // The answer of the run in progress, or else of a new one. `make` owns what it uses: it may
  // outlive this. kTimeout after `limit`: the run goes on. The errors of Work::check().
  Result<std::string> get(std::function<std::string()> make, std::chrono::milliseconds limit);

 private:
  struct Run {
    std::mutex mutex;  // guards what follows
    std::condition_variable changed;
    std::optional<Result<std::string>> answer;
  };
  std::shared_ptr<Run> current(std::function<std::string()> make);

  std::mutex mutex_;  // guards what follows, except the thread
  std::shared_ptr<Run> run_;
  DiskThread thread_;
};

}  // namespace lockstep

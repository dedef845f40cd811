// StatusWatch: a thread that looks at the status and gives its changes, the happenings and the
// meters to the streams of GET /cluster/events. It waits for the cluster's loop and for disks, so
// that neither the HTTP server's thread nor a request worker does. Without a stream it looks once a
// second and builds no status, for the happenings alone. Server owns one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "server/events/happenings.h"
#include "server/operations/meters.h"

namespace lockstep {

class ApiContext;

class StatusWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // The shortest time between two looks: no stream gets more changes.
  static constexpr std::chrono::milliseconds kPeriod{250};
  static constexpr std::chrono::milliseconds kMetersPeriod{1'000};
  static constexpr std::chrono::milliseconds kIdlePeriod{1'000};  // without a stream

  // `context` outlives this.
  explicit StatusWatch(ApiContext& context);
  ~StatusWatch();  // waits for a look in progress
  StatusWatch(const StatusWatch&) = delete;
  StatusWatch& operator=(const StatusWatch&) = delete;

 private:
  void run();
  void look(Clock::time_point now);
  void tell_happenings(const ClusterReport& report);
  void tell_meters(const ClusterReport& report, Clock::time_point now);

  ApiContext& context_;
  Happenings happenings_;  // the thread's, with the two below
  Meters meters_;
  std::optional<Clock::time_point> metered_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool is_stopping_ = false;
  bool has_new_stream_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lockstep

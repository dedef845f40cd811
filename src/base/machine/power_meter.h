// PowerMeter: the energy used by this machine's processors and memory, if the machine counts it:
// Linux's powercap (RAPL of Intel and AMD). Used by `lockstep bench` and by a node's status. GPUs,
// disks, fans and power supply losses are not included; macOS shows its counters only to root, so
// there is no meter. One thread uses a PowerMeter.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

class PowerMeter {
 public:
  static constexpr const char* kSystemFolder = "/sys/class/powercap";
  static constexpr size_t kZonesMax = 64;

  // Nullopt if nothing can be read: no counters, or counters that only root may read.
  static std::optional<PowerMeter> open(const std::filesystem::path& folder = kSystemFolder);

  // Since open(). Counters wrap (after some 20 minutes of full load), so call it more often.
  double joules();

 private:
  struct Zone {
    std::filesystem::path counter;
    uint64_t range_uj = 0;  // where it wraps
    uint64_t last_uj = 0;
  };

  std::vector<Zone> zones_;
  uint64_t sum_uj_ = 0;
};

// PowerGauge: the mean power over the last interval, shared by all readers. Any thread.
class PowerGauge {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kInterval{1'000};  // the shortest averaging interval

  explicit PowerGauge(std::optional<PowerMeter> meter, Clock::time_point now = Clock::now());

  // In watts, between the last two readings at least kInterval apart; nullopt without a meter and
  // in the first interval.
  std::optional<double> watts(Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;  // guards the members below
  std::optional<PowerMeter> meter_;
  Clock::time_point looked_at_;
  double joules_ = 0;
  std::optional<double> watts_;
};

}  // namespace lockstep

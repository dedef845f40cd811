// PowerMeter: the energy that this machine's processors and memory have taken, where the machine
// counts it: Linux's powercap (RAPL of Intel and AMD). Used by `lockstep bench` and by the status
// of a node. GPUs, disks, fans and the losses of the power supply are not in it; macOS shows its
// counters to root alone, so there is no meter. One thread uses a PowerMeter.
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

  // Nullopt where nothing can be read: no counters, or counters that are root's alone.
  static std::optional<PowerMeter> open(const std::filesystem::path& folder = kSystemFolder);

  // Since open(). Counters wrap (after some 20 minutes of full load), so ask more often than that.
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

// PowerGauge: the mean power of late, one for all who ask. Any thread.
class PowerGauge {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kInterval{1'000};  // the least that is averaged over

  explicit PowerGauge(std::optional<PowerMeter> meter, Clock::time_point now = Clock::now());

  // In watts, between the two last looks that were kInterval apart at least; nullopt without a
  // meter and in the first interval.
  std::optional<double> watts(Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;  // of all that follows
  std::optional<PowerMeter> meter_;
  Clock::time_point looked_at_;
  double joules_ = 0;
  std::optional<double> watts_;
};

}  // namespace lockstep

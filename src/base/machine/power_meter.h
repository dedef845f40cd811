// PowerMeter: the energy used by this machine's processors and memory, if the machine counts it:
// Linux's powercap (RAPL of Intel and AMD), and macOS's `powermetrics`, whose number includes the
// chip's GPU and which only root may run. Used by `lockstep bench` and by a node's status. Other
// GPUs, disks, fans and power supply losses are not included. One thread uses a PowerMeter.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/machine/powermetrics.h"
#include "base/machine/program_output.h"

namespace lockstep {

class PowerMeter {
 public:
  static constexpr const char* kSystemFolder = "/sys/class/powercap";
  static constexpr size_t kZonesMax = 64;

  // The one of this machine. Nullopt if nothing can be read: no counters, or only root may.
  static std::optional<PowerMeter> open();
  // Over powercap's folder.
  static std::optional<PowerMeter> open(const std::filesystem::path& folder);
  // Over `powermetrics`, or a program that prints the same, which runs as long as the meter.
  static std::optional<PowerMeter> of_program(const std::string& program);

  // Since open(). Counters wrap (after some 20 minutes of full load), so call it more often.
  // `powermetrics` samples a second at a time: the last one may be missing. Nullopt once that
  // program has ended.
  std::optional<double> joules();

 private:
  struct Zone {
    std::filesystem::path counter;
    uint64_t range_uj = 0;  // where it wraps
    uint64_t last_uj = 0;
  };

  std::vector<Zone> zones_;
  uint64_t sum_uj_ = 0;
  std::unique_ptr<ProgramStream> program_;  // null: zones_ are read
  PowermetricsSum samples_;
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

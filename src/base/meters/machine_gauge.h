// MachineGauge: the meters of this machine, shared by all readers. Power has a gauge of its own
// (base/machine/power_meter.h). Any thread; reading never waits for a disk, whose free space a
// thread of the gauge looks up.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/meters/machine_meters.h"
#include "base/meters/machine_sensors.h"

namespace lockstep {

class MachineGauge {
 public:
  using Clock = std::chrono::steady_clock;
  // The shortest time between two readings, and over which the processors' load is averaged.
  static constexpr std::chrono::milliseconds kInterval{1'000};
  static constexpr std::chrono::seconds kDiskInterval{5};
  // A disk that has not answered for this long is not known.
  static constexpr std::chrono::seconds kDiskSilenceMax{30};

  // `disk`: a folder where models are stored, or will be; empty: not looked at.
  explicit MachineGauge(std::filesystem::path disk, Clock::time_point now = Clock::now());
  ~MachineGauge();
  MachineGauge(const MachineGauge&) = delete;
  MachineGauge& operator=(const MachineGauge&) = delete;

  // The load is unknown in the first interval.
  MachineMeters meters(Clock::time_point now = Clock::now());

 private:
  struct Disk;
  static void watch(const std::shared_ptr<Disk>& disk);
  void look(Clock::time_point now);

  const std::vector<std::filesystem::path> temperatures_;
  const Clock::time_point started_;
  const std::shared_ptr<Disk> disk_;  // shared with the thread, which may outlive this; null: none
  std::mutex mutex_;                  // guards what follows
  std::optional<Clock::time_point> looked_at_;
  std::optional<CpuTimes> times_;
  MachineMeters meters_;
};

}  // namespace lockstep

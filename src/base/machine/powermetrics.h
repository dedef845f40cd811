// PowermetricsSum: the energy that macOS's `powermetrics --samplers cpu_power` reports, summed over
// its samples (man 1 powermetrics; only root may run it). On Apple silicon a sample says "Combined
// Power (CPU + GPU + ANE): 1172 mW", on Intel "package power (CPUs+GT+SA): 2.75W", after a head
// line with "(1010.09ms elapsed)". Used by base/machine/power_meter.cc. A value; one thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lockstep {

class PowermetricsSum {
 public:
  static constexpr size_t kLineBytesMax = 4096;      // longer ones are skipped
  static constexpr double kSampleSecondsMax = 3600;  // beyond it a line is damaged
  static constexpr double kWattsMax = 100'000;

  // The next piece of the output; lines may be cut anywhere.
  void add(std::string_view output);
  double joules() const { return joules_; }

 private:
  void add_line(std::string_view line);

  std::string rest_;  // the line that has not ended
  bool is_skipping_ = false;
  double sample_s_ = 0;  // how long the current sample took; 0: its power is counted, or unknown
  double joules_ = 0;
};

}  // namespace lockstep

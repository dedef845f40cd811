// The clusters that `lockstep bench placement` plays on one machine: machines that sleep to a
// stated speed (device/slowed_device.h), links that are slowed, and models small enough to be
// computed meanwhile.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct EmulatedMachine {
  double read_gb_s = 0;
  double kernel_us = 0;
  double memory = 2;  // for the model, in parts of what it takes on one machine
};

struct EmulatedCluster {
  std::string_view model;  // of emulated_config()
  std::vector<EmulatedMachine> machines;
  int delay_us = 0;   // of each message
  double gbit_s = 0;  // 0: as fast as this machine's memory
};

std::span<const EmulatedCluster> emulated_clusters();

// The config.json of "dense" or "experts".
std::string_view emulated_config(std::string_view model);
// What `--device` has for machines of these speeds, one for each rank.
std::string emulated_devices(std::span<const EmulatedMachine> machines);
// "0.4, 0.4 and 0.2 GB/s, 300 us, 0.05 Gbit/s"
std::string cluster_text(const EmulatedCluster& cluster);

}  // namespace lockstep

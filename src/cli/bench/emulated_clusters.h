// The clusters that `lockstep bench placement` emulates on one machine: machines that sleep to
// match a stated speed (device/open/slowed_device.h), slowed links, and models small enough to be
// computed in that time.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct EmulatedMachine {
  double read_gb_s = 0;
  double kernel_us = 0;
  double memory = 2;  // for the model, as a multiple of its size on one machine
};

struct EmulatedCluster {
  std::string_view model;  // "dense", "experts", or "drafts": its draft layer is always right
  std::vector<EmulatedMachine> machines;
  int delay_us = 0;   // of each message
  double gbit_s = 0;  // 0: as fast as this machine's memory
};

std::span<const EmulatedCluster> emulated_clusters();

// The `--device` value for machines of these speeds, one for each rank.
std::string emulated_devices(std::span<const EmulatedMachine> machines);
// "0.4, 0.4 and 0.2 GB/s, 300 us, 0.05 Gbit/s"
std::string cluster_text(const EmulatedCluster& cluster);

// The models' configs, and the weights of one, in a temporary folder that exists while workers may
// read them.
class EmulatedModels {
 public:
  static Result<EmulatedModels> make();
  EmulatedModels(EmulatedModels&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  EmulatedModels& operator=(EmulatedModels&&) = delete;
  ~EmulatedModels();

  // The name by which every worker opens a cluster's model.
  Result<std::string> name_of(std::string_view model) const;

 private:
  explicit EmulatedModels(std::string folder) : folder_(std::move(folder)) {}

  std::string folder_;
};

}  // namespace lockstep

// NodePower: the mean power of this machine for the status of a node. Any thread.
#pragma once

#include <mutex>
#include <optional>

#include "base/power_meter.h"

namespace lockstep {

class NodePower {
 public:
  NodePower() : gauge_(PowerMeter::open()) {}

  // In watts, over the time since somebody asked before; nullopt where there is no meter.
  std::optional<double> watts() {
    const std::lock_guard lock(mutex_);
    return gauge_.watts();
  }

 private:
  std::mutex mutex_;
  PowerGauge gauge_;
};

}  // namespace lockstep

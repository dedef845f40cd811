// `lockstep bench device`: how fast a device computes, without a model, and the machine as an entry
// of a cluster file (planner/cluster_file.h).
#pragma once

#include <string>

#include "base/result.h"
#include "json/json.h"
#include "planner/facts/device_facts.h"

namespace lockstep {

struct DeviceBenchFlags {
  std::string device;
  int threads = 0;      // 0: a thread for each core
  std::string profile;  // a file to write; empty: none
  std::string name;     // of the machine in it; empty: its own
  bool json = false;
};

Status bench_device(const DeviceBenchFlags& flags);

// A cluster of this machine, with what has been measured. `budget_bytes` is what a node would have.
// kUnsupported if the device's speed is unknown.
Result<Json> profile_json(const std::string& name, const DeviceFacts& facts, uint64_t budget_bytes);

}  // namespace lockstep

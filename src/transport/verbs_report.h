// What RDMA this machine has, for people: the ports of its devices and the addresses that they
// carry. Used by `lockstep doctor`; links ask transport/verbs_devices.h. Devices are opened and
// closed again. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct VerbsPortReport {
  std::string device;  // "mlx5_0"
  int port = 1;
  bool is_active = false;
  bool is_ethernet = false;            // RoCE, else InfiniBand
  std::vector<std::string> addresses;  // that links can use: "10.0.0.2", "fe80::1"
};

struct VerbsReport {
  std::string library;  // the one that was looked for
  bool has_library = false;
  std::string problem;  // why there is no library, or why a device cannot be used; empty: nothing
  std::vector<VerbsPortReport> ports;
};

VerbsReport report_verbs();

}  // namespace lockstep

// The RDMA devices of this machine, for display: their ports and the addresses of these. Used by
// `lockstep doctor`; links use transport/verbs/verbs_devices.h, by which the devices are opened
// once for a process, since drivers wear out. Any thread.
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
  std::vector<std::string> addresses;  // usable by links: "10.0.0.2", "fe80::1"
};

struct VerbsReport {
  std::string library;  // the one looked for
  bool has_library = false;
  std::string problem;  // why the library is missing or a device is unusable; empty: no problem
  std::vector<VerbsPortReport> ports;
};

VerbsReport report_verbs();

}  // namespace lockstep

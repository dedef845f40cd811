// The kind of an RDMA device, and the limits that its kind has. Used by verbs_devices. Pure
// functions, any thread.
#pragma once

#include "transport/verbs/verbs_api.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <cstddef>
#include <cstdint>
#include <limits>

namespace lockstep {

struct VerbsLimits {
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  // RECVs that are posted, so frames that may ever be underway, per direction of a queue pair.
  static constexpr int kDepth = 16;
  // One frame is reserved for credits, and credits are returned for two (verbs_link.cc).
  static constexpr int kWindowMin = 3;
  // The transport type that `ibv_devinfo` of macOS 26.2 prints: "Thunderbolt (100)" (Apple TN3205).
  static constexpr int kThunderboltTransport = 100;
  static constexpr int kQueuePairsMax = 256;
  // Apple's: the eleventh is refused, and after that none can be created until the machine restarts
  // (mlx pull request 4209).
  static constexpr int kUnreliableQueuePairsMax = 10;
  // A Thunderbolt port drops frames without an error while its ring is being refilled: a partial
  // sum of 6.3 MB was lost (TensorFold, recipe glm-5.3; its ring has 8 MiB, and it lets 4 be
  // underway). We stay at half of that.
  static constexpr uint64_t kThunderboltUnacknowledged = uint64_t{2} << 20;

  bool is_thunderbolt = false;
  // Sent by all queue pairs of the device and not yet acknowledged by their receivers, in bytes.
  uint64_t unacknowledged_bytes_max = kNoLimit;
};

VerbsLimits limits_of(const ibv_device& device);

// How many frames of this size a queue pair may have unacknowledged. Each gets an equal part of the
// device's limit, so that all together keep it, in whichever processes they are.
int window_of(const VerbsLimits& limits, size_t frame_bytes);

}  // namespace lockstep

#endif

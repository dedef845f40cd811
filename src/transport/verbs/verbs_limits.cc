#include "transport/verbs/verbs_limits.h"

#ifdef LOCKSTEP_HAS_VERBS

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// Read as a number: the header's enumeration may lack this value.
bool is_thunderbolt(const ibv_device& device) {
#ifdef __APPLE__
  static_cast<void>(device);
  return true;  // macOS has no other kind
#else
  int transport = 0;
  static_assert(sizeof(transport) == sizeof(device.transport_type));
  std::memcpy(&transport, &device.transport_type, sizeof(transport));
  return transport == VerbsLimits::kThunderboltTransport;
#endif
}

}  // namespace

VerbsLimits limits_of(const ibv_device& device) {
  VerbsLimits limits;
  limits.is_thunderbolt = is_thunderbolt(device);
  if (limits.is_thunderbolt) {
    limits.unacknowledged_bytes_max = VerbsLimits::kThunderboltUnacknowledged;
  }
  return limits;
}

int window_of(const VerbsLimits& limits, size_t frame_bytes) {
  const uint64_t share = limits.unacknowledged_bytes_max / VerbsLimits::kUnreliableQueuePairsMax;
  const uint64_t frames = std::min<uint64_t>(share / frame_bytes, VerbsLimits::kDepth);
  return std::max(static_cast<int>(frames), VerbsLimits::kWindowMin);
}

}  // namespace lockstep

#endif

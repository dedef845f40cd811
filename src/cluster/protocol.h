// The versions of the protocol between nodes that a program speaks, and the common one of two
// programs. The beacon and the first frames of a connection stay readable in every version, so that
// an incompatible node is reported instead of silent. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace lockstep {

struct ProtocolRange {
  uint16_t oldest = 1;
  uint16_t newest = 1;

  bool operator==(const ProtocolRange&) const = default;
};

// 2: prompts and events of requests are bytes. 3: workers report the bytes that they load. 4: ranks
// tell each other their RDMA addresses; progress, pauses and guesses of requests. 5: the set-up of
// a worker says how keys and values are stored.
inline constexpr ProtocolRange kProtocols{.oldest = 5, .newest = 5};

// The newest version that both speak.
inline std::optional<uint16_t> common_protocol(const ProtocolRange& a, const ProtocolRange& b) {
  const uint16_t newest = std::min(a.newest, b.newest);
  if (newest < std::max(a.oldest, b.oldest)) return std::nullopt;
  return newest;
}

// The mismatch, as one sentence for the owner: "it runs lockstep 2.0, which ...".
inline std::string protocol_mismatch(const std::string& version, const ProtocolRange& theirs,
                                     const ProtocolRange& ours) {
  const bool is_theirs_newer = theirs.oldest > ours.newest;
  return "it runs lockstep " + version + ", which is too " + (is_theirs_newer ? "new" : "old") +
         " for this node: update " + (is_theirs_newer ? "this node" : "it");
}

}  // namespace lockstep

// The messages that the two ranks of a pair exchange over TCP while they set up an RDMA link.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "transport/tcp/socket_exchange.h"

namespace lockstep {

// Each side sends one of these per phase; little-endian on the wire. A side that cannot continue
// sends the reason instead.
struct VerbsNote {
  static constexpr uint64_t kMagic = 0x7362'7265'766b'636c;  // in memory: "lckverbs"
  static constexpr uint32_t kVersion = 1;
  enum Phase : uint32_t { kAbility = 1, kEndpoint, kReady, kVerdict };

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t phase = kAbility;
  uint32_t is_able = 0;
  // kAbility
  uint32_t is_reliable = 0;
  uint32_t mtu = 0;          // as ibv_mtu
  uint32_t frame_bytes = 0;  // the largest
  // kEndpoint
  uint32_t queue_pair = 0;
  uint32_t first_packet = 0;
  uint32_t connection = 0;
  uint32_t lid = 0;
  std::array<uint8_t, 16> gid{};
  char reason[188] = {};  // ends with a zero
  // kEndpoint: frames that this side may have unacknowledged. 0 in versions of lockstep whose
  // window was always VerbsLimits::kDepth; there `reason` is longer.
  uint32_t window = 0;
};
static_assert(sizeof(VerbsNote) == 256);

// Sends the peer whether we can continue (`status`) and receives the same; true if both can, else
// `refusal` says which side cannot and why. An error: the peer is gone, silent or not a rank.
Result<bool> exchange_notes(int socket, VerbsNote& own, VerbsNote& peer, const Status& status,
                            const ExchangeLimits& limits, std::string& refusal);

}  // namespace lockstep

// The frame that every link sends: a header of one cache line, then the payload padded to whole
// cache lines, so that payloads are 64-byte aligned both in a shared ring and in a socket's buffer.
// Numbers are little-endian.
//   0 epoch u32 | 4 payload length u32 | 8 sequence u64 | 16 zeros | 48 tag, 16 bytes
// The tag is zeros unless the payload is encrypted.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "headers go out as they lie in memory");

inline constexpr size_t kFrameAlignment = 64;
inline constexpr size_t kFrameHeaderBytes = kFrameAlignment;
inline constexpr size_t kFrameBytesMax = size_t{1} << 20;  // largest payload; the smallest is 1

struct FrameHeader {
  uint32_t epoch = 0;
  uint32_t length = 0;
  uint64_t sequence = 0;
};
static_assert(sizeof(FrameHeader) == 16);

constexpr size_t frame_slot_bytes(size_t payload_bytes) {
  const size_t lines = (payload_bytes + kFrameAlignment - 1) / kFrameAlignment;
  return kFrameHeaderBytes + lines * kFrameAlignment;
}

// `found` must be the frame `wanted` (epoch and sequence) with 1 to wanted.length bytes, else
// kCorrupt.
Status check_header(const FrameHeader& found, const FrameHeader& wanted, int peer);

// "rank 1: <what>"
Error peer_error(ErrorCode code, int peer, std::string_view what);

}  // namespace lockstep

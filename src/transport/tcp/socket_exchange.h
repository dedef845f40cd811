// Exchanges fixed numbers of bytes over a connected, non-blocking socket: how two ranks agree on
// something while links are set up. Blocks until its deadline.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <span>

#include "base/result.h"

namespace lockstep {

struct ExchangeLimits {
  int peer = 0;  // its rank, for messages
  std::chrono::steady_clock::time_point deadline;
  const std::atomic<bool>* cancelled = nullptr;
};

// Sends all of `out` and fills all of `in`.
Status exchange_bytes(int socket, std::span<const std::byte> out, std::span<std::byte> in,
                      const ExchangeLimits& limits);

}  // namespace lockstep

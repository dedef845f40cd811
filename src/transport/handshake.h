// The first bytes on a connection between two ranks, in both directions: who speaks, and of which
// group.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/rendezvous.h"

namespace lockstep {

// Little-endian on the wire.
struct Hello {
  static constexpr uint64_t kMagic = 0x7065'7473'6b63'6f6c;  // "lockstep"
  static constexpr uint32_t kVersion = 1;

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t epoch = 0;
  GroupToken token{};
  uint32_t from = 0;
  uint32_t to = 0;
};
static_assert(sizeof(Hello) == 40);

// Whether it is of our group and epoch and meant for us; the ranks are checked by the caller.
bool is_of_group(const Hello& hello, const RendezvousOptions& options);

// A non-blocking socket on which a Hello is received piece by piece.
class HelloReader {
 public:
  // Reads what has come. True once the Hello is complete; an error if the connection ended.
  Result<bool> read(int fd);
  const Hello& hello() const { return hello_; }

 private:
  Hello hello_;
  size_t received_ = 0;
};

// Sends all of it: the first 40 bytes on a connection always find room.
bool send_hello(int fd, const Hello& hello);

// A socket that connects, or has connected, without blocking.
Result<UniqueFd> start_connect(const TcpAddress& address);
// 0, or the error number with which connecting ended. For a socket that poll() calls writable.
int connect_error(int fd);

}  // namespace lockstep

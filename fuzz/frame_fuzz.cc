// links: transport
// A peer's bytes on a TCP link, plain and encrypted, and its first message in a handshake: nothing
// crashes, an accepted frame is whole, and a stranger is never admitted.
#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <utility>

#include "base/check.h"
#include "transport/tcp/handshake.h"
#include "transport/tcp/tcp_link.h"

using namespace lockstep;

namespace {

constexpr size_t kInputMax = 64 * 1024;  // fits a socket's buffer, so that sending never blocks

std::pair<UniqueFd, UniqueFd> connected(std::span<const uint8_t> input) {
  int fds[2];
  LOCKSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
  std::pair<UniqueFd, UniqueFd> ends{UniqueFd(fds[0]), UniqueFd(fds[1])};
  if (!input.empty()) {
    LOCKSTEP_CHECK(::send(fds[0], input.data(), input.size(), 0) ==
                   static_cast<ssize_t>(input.size()));
  }
  LOCKSTEP_CHECK(::shutdown(fds[0], SHUT_WR) == 0);
  return ends;
}

void read_frames(std::span<const uint8_t> input, bool is_encrypted) {
  auto [peer, own] = connected(input);
  TcpLink::Options options{.peer = 0, .epoch = 7};
  if (is_encrypted) options.keys.emplace();
  const auto link = std::move(TcpLink::open(std::move(own), options).value());
  volatile unsigned sum = 0;  // so that every byte is read
  size_t left = input.size();
  while (link->health().ok()) {
    const auto frame = link->peek();
    if (frame.empty()) continue;
    LOCKSTEP_CHECK(!is_encrypted);  // without the key no frame can be sealed
    LOCKSTEP_CHECK(frame_slot_bytes(frame.size()) <= left);
    left -= frame_slot_bytes(frame.size());
    for (const std::byte byte : frame) sum = sum + std::to_integer<unsigned>(byte);
    link->release();
  }
}

void shake_hands(std::span<const uint8_t> input, Handshake handshake) {
  const auto [peer, own] = connected(input);
  for (;;) {
    const Result<bool> is_done = handshake.advance(own.get());
    if (!is_done.ok()) return;
    LOCKSTEP_CHECK(!is_done.value());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> input(data, size < kInputMax ? size : kInputMax);
  const Handshake::Options options{.rank = 1, .size = 3, .epoch = 7, .token = {std::byte{9}}};
  read_frames(input, false);
  read_frames(input, true);
  shake_hands(input, Handshake::answer(options));
  shake_hands(input, Handshake::call(options, 0, 0));
  return 0;
}

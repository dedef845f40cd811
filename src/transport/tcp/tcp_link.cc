#include "transport/tcp/tcp_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "transport/tcp/socket.h"

namespace lockstep {
namespace {

// A bit more than two of the largest frames: one is read or filled while the other travels.
constexpr size_t kBufferBytes = 2 * frame_slot_bytes(kFrameBytesMax) + 256 * 1024;
// The place of the seal's tag in a header.
constexpr size_t kTagOffset = kFrameHeaderBytes - sizeof(AeadTag);

}  // namespace

Result<std::unique_ptr<Link>> TcpLink::open(UniqueFd socket, const Options& options) {
  TRY(set_up_socket(socket.get()));
  PathWatch::prepare(socket.get());
  std::optional<Seals> seals;
  if (const auto& keys = options.keys) {
    AeadSealer sealer = TRY(AeadSealer::open(keys->cipher, keys->send));
    AeadOpener opener = TRY(AeadOpener::open(keys->cipher, keys->receive));
    seals.emplace(Seals{std::move(sealer), std::move(opener)});
  }
  return std::unique_ptr<Link>(new TcpLink(std::move(socket), options, std::move(seals)));
}

TcpLink::TcpLink(UniqueFd socket, const Options& options, std::optional<Seals> seals)
    : socket_(std::move(socket)),
      peer_(options.peer),
      epoch_(options.epoch),
      seals_(std::move(seals)) {
  out_.allocate(kBufferBytes);
  in_.allocate(kBufferBytes);
}

TcpLink::~TcpLink() {
  flush();
}

void TcpLink::Buffer::allocate(size_t size) {
  memory = std::make_unique_for_overwrite<std::byte[]>(size + kFrameAlignment);
  const size_t misplaced = reinterpret_cast<uintptr_t>(memory.get()) % kFrameAlignment;
  bytes = memory.get() + (kFrameAlignment - misplaced) % kFrameAlignment;
}

std::span<std::byte> TcpLink::acquire(size_t bytes) {
  LOCKSTEP_CHECK(bytes > 0 && bytes <= kFrameBytesMax);
  const size_t slot_bytes = frame_slot_bytes(bytes);
  if (out_.end + slot_bytes > kBufferBytes) flush();  // which empties it or makes no room
  if (out_.end + slot_bytes > kBufferBytes) return {};
  acquired_bytes_ = bytes;
  return {out_.bytes + out_.end + kFrameHeaderBytes, bytes};
}

void TcpLink::post() {
  LOCKSTEP_CHECK(acquired_bytes_ > 0);
  std::byte* slot = out_.bytes + out_.end;
  const size_t slot_bytes = frame_slot_bytes(acquired_bytes_);
  const FrameHeader header{epoch_, static_cast<uint32_t>(acquired_bytes_), send_sequence_++};
  std::memcpy(slot, &header, sizeof(header));
  std::memset(slot + sizeof(header), 0, kFrameHeaderBytes - sizeof(header));
  if (seals_) {
    const AeadTag tag = seals_->sealer.seal(header.sequence, {slot, sizeof(header)},
                                            {slot + kFrameHeaderBytes, acquired_bytes_});
    std::memcpy(slot + kTagOffset, tag.data(), tag.size());
  }
  const size_t used_bytes = kFrameHeaderBytes + acquired_bytes_;
  std::memset(slot + used_bytes, 0, slot_bytes - used_bytes);
  out_.end += slot_bytes;
  acquired_bytes_ = 0;
  flush();
}

bool TcpLink::flush() {
  while (out_.begin < out_.end) {
    const ssize_t sent =
        ::send(socket_.get(), out_.bytes + out_.begin, out_.end - out_.begin, kSendFlags);
    if (sent < 0) {
      if (!is_try_later(errno)) lose(errno);  // earlier frames of the peer can still be read
      return false;
    }
    out_.begin += static_cast<size_t>(sent);
  }
  out_.begin = out_.end = 0;
  return true;
}

std::span<const std::byte> TcpLink::peek() {
  if (!peeked_.empty()) return peeked_;
  peeked_ = parse();
  if (peeked_.empty() && has_input_) {
    if (out_.begin < out_.end) flush();
    receive();
    peeked_ = parse();
  }
  return peeked_;
}

void TcpLink::release() {
  LOCKSTEP_CHECK(!peeked_.empty());
  in_.begin += frame_slot_bytes(peeked_.size());
  if (in_.begin == in_.end) in_.begin = in_.end = 0;
  peeked_ = {};
}

void TcpLink::wait_readable(std::chrono::microseconds at_most) {
  if (!peek().empty() || !state_.ok()) return;
  const bool is_sending = out_.begin < out_.end;
  pollfd entry{socket_.get(), static_cast<short>(is_sending ? POLLIN | POLLOUT : POLLIN), 0};
  ::poll(&entry, 1, static_cast<int>((at_most.count() + 999) / 1000));
}

Status TcpLink::health() const {
  if (!state_.ok() || !path_.is_dead(socket_.get())) return state_;
  return peer_error(ErrorCode::kPeerLost, peer_, kDeadPath);
}

// Takes what the kernel has. No frame may be held.
void TcpLink::receive() {
  make_room();
  const ssize_t received =
      ::recv(socket_.get(), in_.bytes + in_.end, kBufferBytes - in_.end, MSG_DONTWAIT);
  if (received > 0) {
    in_.end += static_cast<size_t>(received);
  } else if (received == 0 || !is_try_later(errno)) {
    has_input_ = false;
    lose(received == 0 ? 0 : errno);
  }
}

// The frame that begins at in_.begin must fit before the end of the buffer.
void TcpLink::make_room() {
  if (in_.begin == 0 || in_.begin + frame_slot_bytes(kFrameBytesMax) <= kBufferBytes) return;
  std::memmove(in_.bytes, in_.bytes + in_.begin, in_.end - in_.begin);
  in_.end -= in_.begin;
  in_.begin = 0;
}

// The frame at in_.begin if all of it has arrived.
std::span<const std::byte> TcpLink::parse() {
  const size_t available = in_.end - in_.begin;
  if (available < kFrameHeaderBytes) return {};
  FrameHeader header;
  std::memcpy(&header, in_.bytes + in_.begin, sizeof(header));
  const FrameHeader wanted{epoch_, static_cast<uint32_t>(kFrameBytesMax), receive_sequence_};
  if (Status status = check_header(header, wanted, peer_); !status.ok()) {
    break_link(std::move(status.error()));
    return {};
  }
  if (available < frame_slot_bytes(header.length)) return {};
  if (seals_ && !unseal(header)) {
    break_link(peer_error(ErrorCode::kCorrupt, peer_,
                          "a frame was not sealed by it, or was changed in transit"));
    return {};
  }
  ++receive_sequence_;
  return {in_.bytes + in_.begin + kFrameHeaderBytes, header.length};
}

bool TcpLink::unseal(const FrameHeader& header) {
  std::byte* slot = in_.bytes + in_.begin;
  AeadTag tag;
  std::memcpy(tag.data(), slot + kTagOffset, tag.size());
  return seals_->opener.unseal(header.sequence, {slot, sizeof(header)},
                               {slot + kFrameHeaderBytes, header.length}, tag);
}

// Nothing after a bad frame is read.
void TcpLink::break_link(Error error) {
  if (state_.ok()) state_ = std::move(error);
  has_input_ = false;
  in_.begin = in_.end = 0;
}

void TcpLink::lose(int error_number) {
  if (!state_.ok()) return;
  const bool is_cut = in_.begin < in_.end;
  std::string what =
      is_cut ? "it closed the connection inside a frame" : "it closed the connection";
  if (error_number != 0) what = std::string("the connection ended: ") + std::strerror(error_number);
  state_ = peer_error(ErrorCode::kPeerLost, peer_, what.c_str());
}

}  // namespace lockstep

#include "collective/group.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "collective/peer_wait.h"

namespace lockstep {

Group::Group(Options options)
    : options_(std::move(options)), adder_(options_.kernels ? options_.kernels->add : nullptr) {
  const size_t size = options_.links.size();
  LOCKSTEP_CHECK(options_.rank >= 0 && static_cast<size_t>(options_.rank) < size);
  for (size_t rank = 0; rank < size; ++rank) {
    const Link* link = options_.links[rank].get();
    LOCKSTEP_CHECK((link != nullptr) == is_peer(static_cast<int>(rank)));
    LOCKSTEP_CHECK(!link || link->frame_bytes_max() >= kPieceBytes);
  }
  transfers_.resize(size);
  posted_.resize(size);
  peeked_.resize(size);
}

Status Group::all_gather(std::span<const std::span<std::byte>> parts) {
  LOCKSTEP_CHECK(parts.size() == transfers_.size());
  if (!state_.ok()) return state_;
  const auto own = parts[static_cast<size_t>(rank())];
  for (size_t peer = 0; peer < parts.size(); ++peer) transfers_[peer] = {own, parts[peer]};
  return finish(exchange());
}

Status Group::gather(int root, std::span<const std::span<std::byte>> parts) {
  LOCKSTEP_CHECK(parts.size() == transfers_.size() && root >= 0 && root < size());
  if (!state_.ok()) return state_;
  for (size_t peer = 0; peer < parts.size(); ++peer) {
    transfers_[peer] = {};
    if (rank() == root) transfers_[peer].in = parts[peer];
  }
  if (is_peer(root)) {
    transfers_[static_cast<size_t>(root)].out = parts[static_cast<size_t>(rank())];
  }
  return finish(exchange());
}

// Moves everything in transfers_, with all peers at once: waiting to send never keeps us from
// receiving, so full links cannot lock the ranks against each other.
Status Group::exchange() {
  transfers_[static_cast<size_t>(rank())] = {};
  PeerWait wait(options_);
  for (;;) {
    int unfinished = -1;
    bool has_moved = false;
    for (int peer = 0; peer < size(); ++peer) {
      const Transfer& transfer = transfers_[static_cast<size_t>(peer)];
      if (transfer.out.empty() && transfer.in.empty()) continue;
      has_moved |= TRY(move_pieces(peer));
      if (unfinished < 0 && !(transfer.out.empty() && transfer.in.empty())) unfinished = peer;
    }
    if (unfinished < 0) return flush();
    if (has_moved) {
      wait.restart();
      continue;
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (is_peer(peer)) link(peer).flush();
    }
    TRY(wait.pause(unfinished));
  }
}

// At most one piece out and one in; false if neither could move.
Result<bool> Group::move_pieces(int peer) {
  Transfer& transfer = transfers_[static_cast<size_t>(peer)];
  bool has_moved = false;
  if (const size_t bytes = std::min(transfer.out.size(), kPieceBytes); bytes > 0) {
    if (const auto frame = link(peer).acquire(bytes); !frame.empty()) {
      std::memcpy(frame.data(), transfer.out.data(), bytes);
      link(peer).post();
      transfer.out = transfer.out.subspan(bytes);
      has_moved = true;
    }
  }
  if (const size_t bytes = std::min(transfer.in.size(), kPieceBytes); bytes > 0) {
    if (const auto frame = link(peer).peek(); !frame.empty()) {
      if (frame.size() != bytes) {
        return peer_error(ErrorCode::kCorrupt, peer, "a message has another length than agreed");
      }
      std::memcpy(transfer.in.data(), frame.data(), bytes);
      link(peer).release();
      transfer.in = transfer.in.subspan(bytes);
      has_moved = true;
    }
  }
  return has_moved;
}

Status Group::flush() {
  PeerWait wait(options_);
  for (int peer = 0; peer < size(); ++peer) {
    while (is_peer(peer) && !link(peer).flush()) TRY(wait.pause(peer, "room for a message"));
  }
  return Ok{};
}

Status Group::finish(Status status) {
  if (!status.ok()) state_ = status;
  return status;
}

}  // namespace lockstep

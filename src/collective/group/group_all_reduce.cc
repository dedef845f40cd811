// Group::all_reduce in one hop: every rank sends its subtree sums to all others at once and adds
// everyone's in the one tree. Own sums are written straight into outgoing frames, and the peers'
// are read where they arrive. A piece is a range of elements; its frame holds that range of every
// subtree of the sender, one after the other.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "collective/group/group.h"
#include "collective/sums/peer_wait.h"
#include "transport/frame.h"

namespace lockstep {

void Group::begin_in_one_hop(Reduction& reduction) {
  size_t nodes_max = 0;
  for (int rank = 0; rank < size(); ++rank) {
    nodes_max = std::max(nodes_max, reduction.shares->nodes(rank).size());
  }
  reduction.piece_floats = options_.piece_bytes / sizeof(float) / nodes_max;
  LOCKSTEP_CHECK(reduction.piece_floats > 0);
  reduction.piece_count = (reduction.sum.size() - 1) / reduction.piece_floats + 1;
  std::fill(posted_.begin(), posted_.end(), 0);
}

Status Group::poll_in_one_hop(Reduction& reduction) {
  while (TRY(move(reduction)).has_moved) {
  }
  for (int peer = 0; peer < size(); ++peer) {
    if (is_peer(peer)) link(peer).flush();
  }
  return Ok{};
}

// Nothing waits for a single peer: the oldest piece that any rank still lacks always has room, so
// the ranks cannot deadlock.
Status Group::finish_in_one_hop(Reduction& reduction) {
  PeerWait wait(options_);
  while (reduction.added < reduction.piece_count) {
    const Move moved = TRY(move(reduction));
    if (moved.has_moved) {
      wait.restart();
      continue;
    }
    for (int peer = 0; peer < size(); ++peer) {
      if (is_peer(peer)) link(peer).flush();
    }
    TRY(wait.pause(moved.lacking, 0));
  }
  return flush();
}

// A piece is added once it has been sent to all peers (`sum` may be `own`) and has arrived from
// all.
Result<Group::Move> Group::move(Reduction& reduction) {
  if (reduction.added == reduction.piece_count) return Move{};
  Move moved{.has_moved = post_pieces(reduction)};
  moved.lacking = TRY(find_lacking(reduction));
  if (moved.lacking != 0) return moved;
  add_piece(reduction);
  ++reduction.added;
  moved.has_moved = true;
  return moved;
}

// Gives each peer the next piece if there is room; false if none could be given.
bool Group::post_pieces(Reduction& reduction) {
  const size_t node_count = reduction.shares->nodes(rank()).size();
  bool has_posted = false;
  for (int peer = 0; peer < size() && node_count > 0; ++peer) {
    size_t& piece = posted_[static_cast<size_t>(peer)];
    if (!is_peer(peer) || piece == reduction.piece_count) continue;
    auto frame = link(peer).acquire(reduction.frame_bytes(rank(), piece));
    if (frame.empty()) continue;
    const size_t bytes = frame.size() / node_count;
    const float* values = reduction.own.data() + reduction.begin(piece);
    for (size_t node = 0; node < node_count; ++node) {
      std::memcpy(frame.data() + node * bytes, values + node * reduction.sum.size(), bytes);
    }
    link(peer).post();
    ++piece;
    has_posted = true;
  }
  return has_posted;
}

// The ranks whose part of the current piece is still missing.
Result<PeerSet> Group::find_lacking(const Reduction& reduction) {
  PeerSet lacking = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (!is_peer(peer)) continue;
    const bool is_unsent =
        !reduction.own.empty() && posted_[static_cast<size_t>(peer)] <= reduction.added;
    auto& frame = peeked_[static_cast<size_t>(peer)];
    const size_t bytes = reduction.frame_bytes(peer, reduction.added);
    if (bytes > 0 && frame.empty()) {
      frame = link(peer).peek();
      if (!frame.empty() && frame.size() != bytes) {
        return peer_error(ErrorCode::kCorrupt, options_.name_of(peer),
                          "a message does not have the agreed length");
      }
    }
    if (is_unsent || frame.size() != bytes) lacking |= peer_bit(peer);
  }
  return lacking;
}

// Adds the current piece of all ranks and releases the frames.
void Group::add_piece(const Reduction& reduction) {
  const size_t begin = reduction.begin(reduction.added);
  const size_t count = reduction.length(reduction.added);
  parts_.clear();
  for (int source = 0; source < size(); ++source) {
    if (reduction.shares->nodes(source).empty()) continue;
    const bool is_own = !is_peer(source);
    const float* values =
        is_own ? reduction.own.data() + begin
               : reinterpret_cast<const float*>(peeked_[static_cast<size_t>(source)].data());
    for (const TreeNode node : reduction.shares->nodes(source)) {
      parts_.push_back({node, values});
      values += is_own ? reduction.sum.size() : count;
    }
  }
  adder_.add(parts_, reduction.shares->leaf_count(), reduction.sum.subspan(begin, count));
  for (int peer = 0; peer < size(); ++peer) {
    auto& frame = peeked_[static_cast<size_t>(peer)];
    if (!frame.empty()) link(peer).release();
    frame = {};
  }
}

}  // namespace lockstep

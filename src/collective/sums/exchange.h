// Exchange: runs one rank's part of an exchange that was planned beforehand. A plan lists the
// values (slots) to send to and receive from each peer, in order, and which two slots add up to a
// third; the timing follows from what has arrived. Long values travel in pieces: each link carries
// the first window of pieces of every message before the second, so that relays forward while more
// arrives. Arriving pieces always have memory waiting, so full links cannot deadlock the ranks.
// For collective/ only; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/plan/group_options.h"
#include "collective/plan/sum_tree.h"
#include "collective/plan/wire.h"
#include "collective/sums/peer_wait.h"

namespace lockstep {

struct ExchangePlan {
  struct Slot {
    int part = 0;      // which of the lengths it has
    int sibling = -1;  // the slot to which it is added; -1: none
    int sum = -1;      // the slot of their sum
    bool is_left = false;
    bool is_given = false;  // present from the beginning
    bool is_sent = false;
    bool is_root = false;  // of sums
    TreeNode node;         // for sums: the subtree it stands for
  };
  using Message = std::vector<int>;  // slots in the order of their pieces in a frame
  struct Route {
    int peer = 0;
    std::vector<Message> sends;
    std::vector<Message> receives;
  };

  std::vector<Slot> slots;
  std::vector<Route> routes;  // only peers with messages
  int part_count = 1;

  Route& route(int peer);  // added if missing
};

// The data a plan runs on. Elements are floats in sums and bytes elsewhere.
struct ExchangeData {
  std::span<std::byte* const> memory;  // (slots) where each begins; given slots are only read
  std::span<const size_t> lengths;     // (parts) elements
  size_t piece_elements = 0;           // a multiple of kWireBlock
  size_t window_pieces = 1;
  bool is_sum = false;
  Wire wire = Wire::kF32;  // for sums
};

class Exchange {
 public:
  Status run(const GroupOptions& options, const ExchangePlan& plan, const ExchangeData& data) {
    begin(plan, data);
    return finish(options);
  }

  // The same in steps, to overlap with other work of the caller: `plan` and the memory that `data`
  // refers to must stay unchanged until finish() has returned.
  void begin(const ExchangePlan& plan, const ExchangeData& data);
  // Moves what can move without waiting.
  Status poll(const GroupOptions& options);
  // Returns once everything has arrived and everything sent has left this process.
  Status finish(const GroupOptions& options);

 private:
  // The next message in one direction of a route.
  struct Cursor {
    size_t window = 0;  // begins at this piece
    size_t message = 0;
    size_t piece = 0;
  };

  // Whether anything moved, and the peers that still have to receive or send.
  struct Left {
    bool has_moved = false;
    PeerSet unsent = 0;
    PeerSet unheard = 0;
  };

  Result<Left> move(const GroupOptions& options);
  bool send(Link& link, const ExchangePlan::Route& route, Cursor& at);
  Result<bool> receive(const GroupOptions& options, const ExchangePlan::Route& route, Cursor& at);
  void next(const std::vector<ExchangePlan::Message>& messages, Cursor& at) const;
  void skip_empty(const std::vector<ExchangePlan::Message>& messages, Cursor& at) const;
  bool is_done(const std::vector<ExchangePlan::Message>& messages, const Cursor& at) const;
  bool is_ready(const ExchangePlan::Message& message, size_t piece) const;
  void write_frame(std::span<std::byte> frame, const ExchangePlan::Message& message, size_t piece);
  void read_frame(std::span<const std::byte> frame, const ExchangePlan::Message& message,
                  size_t piece);
  void take(int slot, size_t piece);
  void add(int slot, const float* values, size_t piece);

  size_t length(int slot, size_t piece) const;  // elements
  size_t message_bytes(const ExchangePlan::Message& message, size_t piece) const;
  size_t wire_size(size_t elements) const;
  std::byte* at(int slot, size_t piece) const;
  unsigned char& ready(int slot, size_t piece);

  const ExchangePlan* plan_ = nullptr;  // the current exchange's
  ExchangeData data_;
  size_t piece_count_ = 0;
  std::vector<unsigned char> ready_;  // (pieces, slots)
  std::vector<Cursor> sent_;          // (routes)
  std::vector<Cursor> received_;      // (routes)
};

}  // namespace lockstep

#include "collective/sums/exchange.h"

#include <algorithm>
#include <cstring>

#include "collective/plan/wire_codec.h"
#include "transport/frame.h"

namespace lockstep {
namespace {

Link& link_of(const GroupOptions& options, const ExchangePlan::Route& route) {
  return *options.links[static_cast<size_t>(route.peer)];
}

}  // namespace

ExchangePlan::Route& ExchangePlan::route(int peer) {
  for (Route& route : routes) {
    if (route.peer == peer) return route;
  }
  routes.push_back({.peer = peer, .sends = {}, .receives = {}});
  return routes.back();
}

void Exchange::begin(const ExchangePlan& plan, const ExchangeData& data) {
  plan_ = &plan;
  data_ = data;
  const size_t longest = *std::max_element(data.lengths.begin(), data.lengths.end());
  piece_count_ = (longest + data.piece_elements - 1) / data.piece_elements;
  ready_.assign(piece_count_ * plan.slots.size(), 0);
  sent_.assign(plan.routes.size(), {});
  received_.assign(plan.routes.size(), {});
  for (size_t piece = 0; piece < piece_count_; ++piece) {
    for (size_t slot = 0; slot < plan.slots.size(); ++slot) {
      if (plan.slots[slot].is_given) take(static_cast<int>(slot), piece);
    }
  }
  for (size_t i = 0; i < plan.routes.size(); ++i) {
    skip_empty(plan.routes[i].sends, sent_[i]);
    skip_empty(plan.routes[i].receives, received_[i]);
  }
}

Status Exchange::poll(const GroupOptions& options) {
  while (TRY(move(options)).has_moved) {
  }
  for (const auto& route : plan_->routes) link_of(options, route).flush();
  return Ok{};
}

Status Exchange::finish(const GroupOptions& options) {
  PeerWait wait(options);
  for (;;) {
    const Left left = TRY(move(options));
    if ((left.unsent | left.unheard) == 0) break;
    if (left.has_moved) {
      wait.restart();
      continue;
    }
    for (const auto& route : plan_->routes) link_of(options, route).flush();
    TRY(wait.pause(left.unheard, left.unsent));
  }
  for (const auto& route : plan_->routes) {
    while (!link_of(options, route).flush()) TRY(wait.pause(0, peer_bit(route.peer)));
  }
  return Ok{};
}

Result<Exchange::Left> Exchange::move(const GroupOptions& options) {
  Left left;
  for (size_t i = 0; i < plan_->routes.size(); ++i) {
    const ExchangePlan::Route& route = plan_->routes[i];
    left.has_moved |= send(link_of(options, route), route, sent_[i]);
    left.has_moved |= TRY(receive(options, route, received_[i]));
    if (!is_done(route.sends, sent_[i])) left.unsent |= peer_bit(route.peer);
    if (!is_done(route.receives, received_[i])) left.unheard |= peer_bit(route.peer);
  }
  return left;
}

// Sends as many ready messages as there is room for.
bool Exchange::send(Link& link, const ExchangePlan::Route& route, Cursor& at) {
  bool has_moved = false;
  while (!is_done(route.sends, at)) {
    const ExchangePlan::Message& message = route.sends[at.message];
    if (!is_ready(message, at.piece)) break;
    const auto frame = link.acquire(message_bytes(message, at.piece));
    if (frame.empty()) break;
    write_frame(frame, message, at.piece);
    link.post();
    next(route.sends, at);
    skip_empty(route.sends, at);
    has_moved = true;
  }
  return has_moved;
}

Result<bool> Exchange::receive(const GroupOptions& options, const ExchangePlan::Route& route,
                               Cursor& at) {
  Link& link = link_of(options, route);
  bool has_moved = false;
  while (!is_done(route.receives, at)) {
    const ExchangePlan::Message& message = route.receives[at.message];
    const auto frame = link.peek();
    if (frame.empty()) break;
    if (frame.size() != message_bytes(message, at.piece)) {
      return peer_error(ErrorCode::kCorrupt, options.name_of(route.peer),
                        "a message does not have the agreed length");
    }
    read_frame(frame, message, at.piece);
    link.release();
    next(route.receives, at);
    skip_empty(route.receives, at);
    has_moved = true;
  }
  return has_moved;
}

void Exchange::next(const std::vector<ExchangePlan::Message>& messages, Cursor& at) const {
  const size_t window_end = std::min(at.window + data_.window_pieces, piece_count_);
  if (++at.piece < window_end) return;
  at.piece = at.window;
  if (++at.message < messages.size()) return;
  at = {.window = window_end, .message = 0, .piece = window_end};
}

// Skips messages without bytes: parts end at different pieces.
void Exchange::skip_empty(const std::vector<ExchangePlan::Message>& messages, Cursor& at) const {
  while (!is_done(messages, at) && message_bytes(messages[at.message], at.piece) == 0) {
    next(messages, at);
  }
}

bool Exchange::is_done(const std::vector<ExchangePlan::Message>& messages, const Cursor& at) const {
  return messages.empty() || at.window >= piece_count_;
}

bool Exchange::is_ready(const ExchangePlan::Message& message, size_t piece) const {
  const unsigned char* ready = ready_.data() + piece * plan_->slots.size();
  return std::all_of(
      message.begin(), message.end(),
      // Values that end before this piece are not waited for: no rank sends them.
      [&](int slot) { return ready[static_cast<size_t>(slot)] != 0 || length(slot, piece) == 0; });
}

void Exchange::write_frame(std::span<std::byte> frame, const ExchangePlan::Message& message,
                           size_t piece) {
  std::byte* to = frame.data();
  for (const int slot : message) {
    const size_t count = length(slot, piece);
    if (count == 0) continue;
    if (data_.is_sum && data_.wire != Wire::kF32) {
      encode_wire(data_.wire, {reinterpret_cast<const float*>(at(slot, piece)), count}, to);
    } else {
      std::memcpy(to, at(slot, piece), wire_size(count));
    }
    to += wire_size(count);
  }
}

// A value needed only as one half of a sum is added straight out of the frame.
void Exchange::read_frame(std::span<const std::byte> frame, const ExchangePlan::Message& message,
                          size_t piece) {
  const std::byte* from = frame.data();
  for (const int slot : message) {
    const size_t count = length(slot, piece);
    if (count == 0) continue;
    const ExchangePlan::Slot& s = plan_->slots[static_cast<size_t>(slot)];
    const std::byte* values = from;
    from += wire_size(count);
    const bool is_coded = data_.is_sum && data_.wire != Wire::kF32;
    if (s.sibling >= 0 && ready(s.sibling, piece) && !s.is_sent && !is_coded) {
      add(slot, reinterpret_cast<const float*>(values), piece);
      continue;
    }
    if (is_coded) {
      decode_wire(data_.wire, values, {reinterpret_cast<float*>(at(slot, piece)), count});
    } else {
      std::memcpy(at(slot, piece), values, wire_size(count));
    }
    take(slot, piece);
  }
}

// The slot's piece has arrived: adds what can be added now.
void Exchange::take(int slot, size_t piece) {
  ready(slot, piece) = 1;
  const ExchangePlan::Slot& s = plan_->slots[static_cast<size_t>(slot)];
  if (s.sibling >= 0 && ready(s.sibling, piece)) {
    add(slot, reinterpret_cast<const float*>(at(slot, piece)), piece);
  }
}

void Exchange::add(int slot, const float* values, size_t piece) {
  const ExchangePlan::Slot& s = plan_->slots[static_cast<size_t>(slot)];
  const size_t count = length(slot, piece);
  const auto* other = reinterpret_cast<const float*>(at(s.sibling, piece));
  auto* sum = reinterpret_cast<float*>(at(s.sum, piece));
  if (count > 0) add_vectors(s.is_left ? values : other, s.is_left ? other : values, sum, count);
  if (count > 0) round_to_wire(data_.wire, {sum, count});
  take(s.sum, piece);
}

size_t Exchange::length(int slot, size_t piece) const {
  const size_t whole =
      data_.lengths[static_cast<size_t>(plan_->slots[static_cast<size_t>(slot)].part)];
  const size_t begin = piece * data_.piece_elements;
  return begin >= whole ? 0 : std::min(data_.piece_elements, whole - begin);
}

size_t Exchange::message_bytes(const ExchangePlan::Message& message, size_t piece) const {
  size_t bytes = 0;
  for (const int slot : message) bytes += wire_size(length(slot, piece));
  return bytes;
}

size_t Exchange::wire_size(size_t elements) const {
  return data_.is_sum ? wire_bytes(data_.wire, elements) : elements;
}

std::byte* Exchange::at(int slot, size_t piece) const {
  const size_t element_bytes = data_.is_sum ? sizeof(float) : 1;
  return data_.memory[static_cast<size_t>(slot)] + piece * data_.piece_elements * element_bytes;
}

unsigned char& Exchange::ready(int slot, size_t piece) {
  return ready_[piece * plan_->slots.size() + static_cast<size_t>(slot)];
}

}  // namespace lockstep

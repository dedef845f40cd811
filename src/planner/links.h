// LinkTable: what a message between every two machines costs. Pairs without a link of their own are
// reached by relays, along the way of the least latency.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "transport/link_kind.h"

namespace lockstep {

struct LinkFigures {
  LinkKind kind = LinkKind::kTcp;
  double latency_us = 0;    // of a short message, one way
  double bytes_per_us = 0;  // of long ones; positive

  bool operator==(const LinkFigures&) const = default;
};

class LinkTable {
 public:
  // `direct` is (machines, machines) and symmetric; nothing where two have no link. Its diagonal is
  // ignored.
  LinkTable(size_t machines, std::vector<std::optional<LinkFigures>> direct);
  // Every two machines have the same link.
  static LinkTable uniform(size_t machines, const LinkFigures& link);

  size_t size() const { return machines_; }
  // Nothing where no way leads from one to the other.
  const std::optional<LinkFigures>& between(size_t a, size_t b) const {
    return ways_[a * machines_ + b];
  }
  // The slowest that any two of `machines` have, in each figure; nothing where two cannot reach
  // each other.
  std::optional<LinkFigures> slowest(std::span<const size_t> machines) const;
  bool is_uniform() const { return is_uniform_; }

 private:
  size_t machines_;
  std::vector<std::optional<LinkFigures>> ways_;
  bool is_uniform_ = false;
};

// A message of `bytes` from its sender to its receiver.
double message_us(const LinkFigures& link, double bytes);

}  // namespace lockstep

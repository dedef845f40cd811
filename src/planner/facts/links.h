// LinkTable: the cost of a message between every two machines. Pairs without a direct link use
// relays, along the path of least latency.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "transport/link_kind.h"

namespace lockstep {

struct LinkFigures {
  LinkKind kind = LinkKind::kTcp;
  double latency_us = 0;    // of a short message, one way
  double bytes_per_us = 0;  // for long ones; positive

  bool operator==(const LinkFigures&) const = default;
};

class LinkTable {
 public:
  // `direct` is (machines, machines) and symmetric; empty where two have no link. Its diagonal is
  // ignored.
  LinkTable(size_t machines, std::vector<std::optional<LinkFigures>> direct);
  // Every two machines have the same link.
  static LinkTable uniform(size_t machines, const LinkFigures& link);

  size_t size() const { return machines_; }
  // Empty if there is no path from one to the other.
  const std::optional<LinkFigures>& between(size_t a, size_t b) const {
    return ways_[a * machines_ + b];
  }
  // The slowest between any two of `machines`, for each figure; empty if two cannot reach each
  // other.
  std::optional<LinkFigures> slowest(std::span<const size_t> machines) const;
  bool is_uniform() const { return is_uniform_; }

 private:
  size_t machines_;
  std::vector<std::optional<LinkFigures>> ways_;
  bool is_uniform_ = false;
};

// The time of a message of `bytes` from its sender to its receiver.
double message_us(const LinkFigures& link, double bytes);

}  // namespace lockstep

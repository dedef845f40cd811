#include "planner/facts/links.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

bool is_slower_kind(LinkKind a, LinkKind b) {
  const auto order = [](LinkKind kind) {
    return kind == LinkKind::kShm ? 0 : kind == LinkKind::kVerbs ? 1 : 2;
  };
  return order(a) > order(b);
}

// Each relay forwards a message once it has all of it, so times add up.
LinkFigures joined(const LinkFigures& first, const LinkFigures& second) {
  return {.kind = is_slower_kind(first.kind, second.kind) ? first.kind : second.kind,
          .latency_us = first.latency_us + second.latency_us,
          .bytes_per_us = 1 / (1 / first.bytes_per_us + 1 / second.bytes_per_us)};
}

}  // namespace

LinkTable::LinkTable(size_t machines, std::vector<std::optional<LinkFigures>> direct)
    : machines_(machines), ways_(std::move(direct)) {
  LOCKSTEP_CHECK(ways_.size() == machines * machines);
  for (size_t i = 0; i < machines; ++i) ways_[i * machines + i].reset();
  const auto way = [&](size_t a, size_t b) -> std::optional<LinkFigures>& {
    return ways_[a * machines + b];
  };
  for (size_t relay = 0; relay < machines; ++relay) {  // Floyd-Warshall
    for (size_t a = 0; a < machines; ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (!way(a, relay) || !way(relay, b)) continue;
        const LinkFigures found = joined(*way(a, relay), *way(relay, b));
        if (way(a, b) && found.latency_us >= way(a, b)->latency_us) continue;
        way(a, b) = way(b, a) = found;  // the same in both directions, to the bit
      }
    }
  }
  is_uniform_ = true;
  for (size_t a = 0; a < machines; ++a) {
    for (size_t b = 0; b < machines; ++b) {
      if (a != b && way(a, b) != way(0, 1)) is_uniform_ = false;
    }
  }
}

LinkTable LinkTable::uniform(size_t machines, const LinkFigures& link) {
  return {machines, std::vector<std::optional<LinkFigures>>(machines * machines, link)};
}

std::optional<LinkFigures> LinkTable::slowest(std::span<const size_t> machines) const {
  std::optional<LinkFigures> slowest;
  for (const size_t a : machines) {
    for (const size_t b : machines) {
      if (a == b) continue;
      const std::optional<LinkFigures>& way = between(a, b);
      if (!way) return std::nullopt;
      if (!slowest) slowest = way;
      if (is_slower_kind(way->kind, slowest->kind)) slowest->kind = way->kind;
      slowest->latency_us = std::max(slowest->latency_us, way->latency_us);
      slowest->bytes_per_us = std::min(slowest->bytes_per_us, way->bytes_per_us);
    }
  }
  return slowest;
}

double message_us(const LinkFigures& link, double bytes) {
  return link.latency_us + bytes / link.bytes_per_us;
}

}  // namespace lockstep

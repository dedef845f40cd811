#include "router/backend_choice.h"

#include <algorithm>
#include <limits>

#include "router/stable_hash.h"

namespace lockstep {
namespace {

int least_running(std::span<const BackendLoad> backends) {
  int least = std::numeric_limits<int>::max();
  for (const BackendLoad& backend : backends) {
    if (backend.may_answer) least = std::min(least, backend.running);
  }
  return least;
}

std::optional<size_t> best_scored(std::span<const BackendLoad> backends, uint64_t prefix,
                                  double running_max) {
  std::optional<size_t> best;
  uint64_t best_score = 0;
  for (size_t i = 0; i < backends.size(); ++i) {
    if (!backends[i].may_answer || backends[i].running > running_max) continue;
    const uint64_t score = rendezvous_score(prefix, backends[i].name);
    if (!best || score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

std::optional<size_t> choose_backend(std::span<const BackendLoad> backends,
                                     std::optional<uint64_t> prefix, uint64_t ticket,
                                     const BalanceLimits& limits) {
  const double least = least_running(backends);
  if (!prefix) return best_scored(backends, ticket, least);
  return best_scored(backends, *prefix, least * limits.busy_factor + limits.busy_slack);
}

uint64_t rendezvous_score(uint64_t prefix, std::string_view backend) {
  return StableHash().add(prefix).add(backend).value();
}

}  // namespace lockstep

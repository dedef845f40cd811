#include "node/requests/pick_group.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/hash.h"

namespace lockstep {
namespace {

// The group with the highest value is preferred; losing another group changes nothing.
uint64_t prompt_affinity(const PlacementEpoch& epoch, std::span<const int32_t> prompt) {
  Fnv hash;
  hash.add(static_cast<uint64_t>(epoch.counter));
  hash.add(static_cast<uint64_t>(epoch.incarnation));
  for (const int32_t token : prompt.first(std::min(prompt.size(), kBeginningTokens))) {
    hash.add(static_cast<uint64_t>(token));
  }
  return mix64(hash.value());
}

}  // namespace

size_t pick_group(std::span<const GroupLoad> groups, std::span<const int32_t> prompt) {
  LOCKSTEP_CHECK(!groups.empty());
  const auto is_better = [&](const GroupLoad& a, const GroupLoad& b) {
    const auto load = [](const GroupLoad& group) {
      return std::tuple(!group.is_ready, group.running);
    };
    if (load(a) != load(b)) return load(a) < load(b);
    return prompt_affinity(a.epoch, prompt) > prompt_affinity(b.epoch, prompt);
  };
  const auto best = std::min_element(groups.begin(), groups.end(), is_better);
  return static_cast<size_t>(best - groups.begin());
}

}  // namespace lockstep

#include "node/requests/least_busy.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace lockstep {
namespace {

// FNV-1a, mixed so that near inputs give distant values (the finaliser of SplitMix64).
class Hash {
 public:
  void add(uint64_t value) { hash_ = (hash_ ^ value) * 1099511628211u; }
  uint64_t value() const {
    uint64_t mixed = (hash_ ^ hash_ >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
  }

 private:
  uint64_t hash_ = 14695981039346656037u;
};

// The group with the highest value is preferred; losing another group changes nothing.
uint64_t liking(const PlacementEpoch& epoch, std::span<const int32_t> prompt) {
  Hash hash;
  hash.add(static_cast<uint64_t>(epoch.counter));
  hash.add(static_cast<uint64_t>(epoch.incarnation));
  for (const int32_t token : prompt.first(std::min(prompt.size(), kBeginningTokens))) {
    hash.add(static_cast<uint64_t>(token));
  }
  return hash.value();
}

}  // namespace

size_t least_busy(std::span<const GroupLoad> groups, std::span<const int32_t> prompt) {
  LOCKSTEP_CHECK(!groups.empty());
  const auto is_better = [&](const GroupLoad& a, const GroupLoad& b) {
    const auto load = [](const GroupLoad& group) {
      return std::tuple(!group.is_ready, group.running);
    };
    if (load(a) != load(b)) return load(a) < load(b);
    return liking(a.epoch, prompt) > liking(b.epoch, prompt);
  };
  const auto best = std::min_element(groups.begin(), groups.end(), is_better);
  return static_cast<size_t>(best - groups.begin());
}

}  // namespace lockstep

#include "grammar/dfa/symbol_set.h"

#include <algorithm>

namespace lockstep {

SymbolSet::SymbolSet(std::vector<SymbolRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](SymbolRange a, SymbolRange b) { return a.first < b.first; });
  for (const SymbolRange range : ranges) {
    if (range.first > range.last) continue;
    if (!ranges_.empty() && range.first <= uint64_t{ranges_.back().last} + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

const SymbolSet& SymbolSet::scalar_values() {
  static const SymbolSet all{{0, 0xD7FF}, {0xE000, kCodePointMax}};
  return all;
}

bool SymbolSet::contains(uint32_t symbol) const {
  const auto range =
      std::lower_bound(ranges_.begin(), ranges_.end(), symbol,
                       [](SymbolRange entry, uint32_t value) { return entry.last < value; });
  return range != ranges_.end() && range->first <= symbol;
}

SymbolSet SymbolSet::united(const SymbolSet& other) const {
  std::vector<SymbolRange> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return SymbolSet(std::move(ranges));
}

SymbolSet SymbolSet::intersected(const SymbolSet& other) const {
  SymbolSet result;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const uint32_t first = std::max(a->first, b->first);
    const uint32_t last = std::min(a->last, b->last);
    if (first <= last) result.ranges_.push_back({first, last});
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return result;
}

SymbolSet SymbolSet::without(const SymbolSet& other) const {
  std::vector<SymbolRange> gaps;
  uint32_t next = 0;
  for (const SymbolRange range : other.ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (other.ranges_.empty() || next != 0) gaps.push_back({next, UINT32_MAX});
  return intersected(SymbolSet(std::move(gaps)));
}

}  // namespace lockstep

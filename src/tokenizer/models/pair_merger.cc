#include "tokenizer/models/pair_merger.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <optional>
#include <queue>
#include <tuple>

#include "base/threads/work.h"

namespace lockstep {
namespace {

constexpr int64_t kNone = -1;
constexpr int32_t kMergedAway = -1;
constexpr int32_t kNoRank = INT32_MAX;
constexpr size_t kShortSymbolsMax = 40;  // above it the queue is faster

struct Symbol {
  int32_t id;
  int64_t previous;
  int64_t next;
};

// A pair that was adjacent when it was queued. Stale if either symbol has changed since.
struct Candidate {
  int32_t rank;
  int32_t left;
  int32_t right;
  int32_t result;
  int64_t position;  // of the left symbol

  bool operator>(const Candidate& other) const {
    return std::tie(rank, position) > std::tie(other.rank, other.position);
  }
};

using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

std::vector<Symbol> link(const std::vector<int32_t>& ids) {
  std::vector<Symbol> symbols(ids.size());
  const auto count = static_cast<int64_t>(ids.size());
  for (int64_t i = 0; i < count; ++i) {
    symbols[i] = {ids[i], i - 1, i + 1 < count ? i + 1 : kNone};
  }
  return symbols;
}

bool is_current(const std::vector<Symbol>& symbols, const Candidate& candidate) {
  const Symbol& left = symbols[candidate.position];
  return left.id == candidate.left && left.next != kNone &&
         symbols[left.next].id == candidate.right;
}

void join(std::vector<Symbol>& symbols, const Candidate& candidate) {
  Symbol& left = symbols[candidate.position];
  Symbol& right = symbols[left.next];
  left.id = candidate.result;
  left.next = right.next;
  right.id = kMergedAway;
  if (left.next != kNone) symbols[left.next].previous = candidate.position;
}

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace

PairMerger::PairMerger(const std::vector<Merge>& merges)
    : slots_(std::bit_ceil(merges.size() * 2 + 1), Slot{0, -1, 0}) {
  int32_t order = 0;
  for (const Merge& merge : merges) {
    const uint64_t pair = pair_of(merge.left, merge.right);
    const int32_t rank = merge.rank == kRankByOrder ? order : merge.rank;
    slots_[slot_of(pair)] = {pair, rank, merge.result};
    ++order;
  }
}

void PairMerger::merge(std::vector<int32_t>& symbols) const {
  if (symbols.size() < 2) return;
  if (symbols.size() <= kShortSymbolsMax) {
    merge_short(symbols);
  } else {
    merge_long(symbols);
  }
}

void PairMerger::merge_short(std::vector<int32_t>& symbols) const {
  struct Pair {
    int32_t rank;
    int32_t result;
  };
  std::array<Pair, kShortSymbolsMax> pairs;  // [i]: of symbols i and i + 1
  const auto pair_at = [&](size_t i) -> Pair {
    const Slot* slot = find(symbols[i], symbols[i + 1]);
    return slot == nullptr ? Pair{kNoRank, 0} : Pair{slot->rank, slot->result};
  };
  size_t count = symbols.size();
  for (size_t i = 0; i + 1 < count; ++i) pairs[i] = pair_at(i);
  while (count > 1) {
    const auto* best = std::min_element(pairs.data(), pairs.data() + count - 1,
                                        [](Pair a, Pair b) { return a.rank < b.rank; });
    if (best->rank == kNoRank) break;
    const auto at = static_cast<size_t>(best - pairs.data());
    symbols[at] = best->result;
    std::copy(symbols.begin() + at + 2, symbols.begin() + count, symbols.begin() + at + 1);
    std::copy(pairs.begin() + at + 1, pairs.begin() + count - 1, pairs.begin() + at);
    --count;
    if (at > 0) pairs[at - 1] = pair_at(at - 1);
    if (at + 1 < count) pairs[at] = pair_at(at);
  }
  symbols.resize(count);
}

void PairMerger::merge_long(std::vector<int32_t>& ids) const {
  std::vector<Symbol> symbols = link(ids);
  std::vector<Candidate> buffer;
  const auto candidate_at = [&](int64_t position) -> std::optional<Candidate> {
    const Symbol& left = symbols[position];
    if (left.next == kNone) return std::nullopt;
    const int32_t right = symbols[left.next].id;
    const Slot* slot = find(left.id, right);
    if (slot == nullptr) return std::nullopt;
    return Candidate{slot->rank, left.id, right, slot->result, position};
  };
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (const auto candidate = candidate_at(static_cast<int64_t>(i))) buffer.push_back(*candidate);
  }
  Queue queue(std::greater<>(), std::move(buffer));
  while (!queue.empty() && !Work::is_over()) {
    const Candidate candidate = queue.top();
    queue.pop();
    if (!is_current(symbols, candidate)) continue;
    join(symbols, candidate);
    for (const int64_t position : {symbols[candidate.position].previous, candidate.position}) {
      if (position == kNone) continue;
      if (const auto next = candidate_at(position)) queue.push(*next);
    }
  }
  ids.clear();
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kMergedAway) ids.push_back(symbol.id);
  }
}

// The slot that holds `pair`, or the free one where it belongs.
size_t PairMerger::slot_of(uint64_t pair) const {
  const size_t mask = slots_.size() - 1;
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // Fibonacci hashing: the high bits are mixed
  size_t index = (pair * kGolden >> 32) & mask;
  while (slots_[index].rank >= 0 && slots_[index].pair != pair) index = (index + 1) & mask;
  return index;
}

const PairMerger::Slot* PairMerger::find(int32_t left, int32_t right) const {
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.rank >= 0 ? &slot : nullptr;
}

}  // namespace lockstep

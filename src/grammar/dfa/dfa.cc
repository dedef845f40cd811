#include "grammar/dfa/dfa.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "grammar/dfa/intern_table.h"

namespace lockstep {
namespace {

constexpr uint32_t kDead = UINT32_MAX;

// A pair of states; kDead for "no longer a word of this one".
using Pair = std::pair<uint32_t, uint32_t>;

bool accepts(const Dfa& dfa, uint32_t state) {
  return state != kDead && dfa.states[state].is_accepting;
}

bool is_accepting(const Dfa& a, const Dfa& b, Pair pair, DfaJoin how) {
  const bool first = accepts(a, pair.first);
  const bool second = accepts(b, pair.second);
  if (how == DfaJoin::kBoth) return first && second;
  if (how == DfaJoin::kFirstOnly) return first && !second;
  return first || second;
}

bool is_hopeless(Pair pair, DfaJoin how) {
  if (how == DfaJoin::kBoth) return pair.first == kDead || pair.second == kDead;
  if (how == DfaJoin::kFirstOnly) return pair.first == kDead;
  return pair.first == kDead && pair.second == kDead;
}

// Walks over the edges of one state in the order of symbols.
class EdgeWalk {
 public:
  EdgeWalk(const Dfa& dfa, uint32_t state) {
    if (state != kDead) edges_ = dfa.states[state].edges;
  }

  // The next symbol at or after `symbol` with an edge, or kDead. Symbols never shrink.
  uint32_t next(uint32_t symbol) {
    while (!edges_.empty() && edges_[0].last < symbol) edges_ = edges_.subspan(1);
    return edges_.empty() ? kDead : std::max(edges_[0].first, symbol);
  }
  // The target of the symbol; lowers `last` to the last symbol with the same target.
  uint32_t target_at(uint32_t symbol, uint32_t& last) const {
    if (edges_.empty()) return kDead;
    if (edges_[0].first > symbol) {
      last = std::min(last, edges_[0].first - 1);
      return kDead;
    }
    last = std::min(last, edges_[0].last);
    return edges_[0].target;
  }

 private:
  std::span<const Dfa::Edge> edges_;
};

struct HashOfPair {
  size_t operator()(Pair pair) const { return mixed_hash(mixed_hash(7, pair.first), pair.second); }
};

}  // namespace

Error too_many_dfa_states() {
  return Error{ErrorCode::kExhausted,
               "a string or number of the grammar needs more than the limit of " +
                   std::to_string(kDfaStatesMax) +
                   " states; use a shorter repetition or a simpler pattern"};
}

Result<Dfa> join(const Dfa& a, const Dfa& b, DfaJoin how, WorkBudget& budget) {
  constexpr size_t kStepsOfEdge = 3;
  std::unordered_map<Pair, uint32_t, HashOfPair> numbers;
  std::vector<Pair> pending;
  const auto number_of = [&](Pair pair) {
    const auto [entry, is_new] = numbers.try_emplace(pair, static_cast<uint32_t>(pending.size()));
    if (is_new) pending.push_back(pair);
    return entry->second;
  };
  const Pair start{a.empty() ? kDead : 0, b.empty() ? kDead : 0};
  Dfa dfa;
  if (is_hopeless(start, how)) return dfa;
  number_of(start);
  for (size_t i = 0; i < pending.size(); ++i) {
    const Pair pair = pending[i];
    Dfa::State state;
    state.is_accepting = is_accepting(a, b, pair, how);
    EdgeWalk of_a(a, pair.first);
    EdgeWalk of_b(b, pair.second);
    for (uint32_t symbol = 0;;) {
      if (!budget.spend(kStepsOfEdge)) return too_much_work();
      const uint32_t next = std::min(of_a.next(symbol), of_b.next(symbol));
      if (next == kDead) break;
      uint32_t last = kDead - 1;
      const uint32_t first_target = of_a.target_at(next, last);
      const uint32_t second_target = of_b.target_at(next, last);
      const Pair targets{first_target, second_target};
      if (!is_hopeless(targets, how)) add_edge(state, {next, last, number_of(targets)});
      symbol = last + 1;
    }
    dfa.states.push_back(std::move(state));
    if (pending.size() > kDfaStatesMax) return too_many_dfa_states();
  }
  return reduced(std::move(dfa), budget);
}

Result<Dfa> dfa_of_words(const std::vector<std::vector<uint32_t>>& words, WorkBudget& budget) {
  constexpr size_t kStepsOfSymbol = 8;
  if (words.empty()) return Dfa{};
  std::vector<std::map<uint32_t, uint32_t>> children(1);
  std::vector<bool> is_word(1);
  for (const auto& word : words) {
    if (!budget.spend(kStepsOfSymbol * (1 + word.size()))) return too_much_work();
    uint32_t state = 0;
    for (const uint32_t symbol : word) {
      const auto next = static_cast<uint32_t>(children.size());
      const auto [entry, is_new] = children[state].try_emplace(symbol, next);
      state = entry->second;
      if (!is_new) continue;
      children.emplace_back();
      is_word.push_back(false);
    }
    is_word[state] = true;
  }
  Dfa dfa;
  for (size_t i = 0; i < children.size(); ++i) {
    Dfa::State state{is_word[i], {}};
    for (const auto& [symbol, target] : children[i]) add_edge(state, {symbol, symbol, target});
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

Result<Dfa> dfa_of_length(const SymbolSet& set, uint32_t min, uint32_t max, WorkBudget& budget) {
  if (min > max) return Dfa{};
  const bool has_end = max != UINT32_MAX;
  const uint32_t last = has_end ? max : min;
  if (last >= kDfaStatesMax) return too_many_dfa_states();
  if (!budget.spend(2 + last * (1 + set.ranges().size() / 8))) return too_much_work();
  Dfa dfa;
  dfa.states.resize(last + 1);
  for (uint32_t i = 0; i <= last; ++i) {
    dfa.states[i].is_accepting = i >= min;
    if (i == last && has_end) break;
    for (const SymbolRange range : set.ranges()) {
      dfa.states[i].edges.push_back({range.first, range.last, i == last ? i : i + 1});
    }
  }
  return dfa;
}

bool dfa_accepts(const Dfa& dfa, const std::vector<uint32_t>& symbols) {
  if (dfa.empty()) return false;
  uint32_t state = 0;
  for (const uint32_t symbol : symbols) {
    const auto& edges = dfa.states[state].edges;
    const auto edge =
        std::lower_bound(edges.begin(), edges.end(), symbol,
                         [](const Dfa::Edge& entry, uint32_t value) { return entry.last < value; });
    if (edge == edges.end() || edge->first > symbol) return false;
    state = edge->target;
  }
  return dfa.states[state].is_accepting;
}

}  // namespace lockstep

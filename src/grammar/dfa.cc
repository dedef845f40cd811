#include "grammar/dfa.h"

#include <algorithm>
#include <map>

namespace lockstep {
namespace {

constexpr uint32_t kDead = UINT32_MAX;
// Joining equal states takes up to states times edges of steps.
constexpr size_t kReduceStatesMax = 400;
constexpr size_t kReduceEdgesMax = 10'000;

Error too_many_states() {
  return Error{ErrorCode::kExhausted,
               "a string or number of the grammar needs more than the limit of " +
                   std::to_string(kDfaStatesMax) +
                   " states; use a shorter repetition or a simpler pattern"};
}

using StateSet = std::vector<uint32_t>;  // sorted

// Follows jumps whose condition holds, and keeps the states that matter: with symbols, the
// accepting one, and those with a jump for the end.
class Closure {
 public:
  explicit Closure(const Nfa& nfa) : nfa_(nfa), seen_(nfa.states.size(), 0) {}

  StateSet of(const StateSet& from, bool at_begin, bool at_end) {
    ++round_;
    StateSet stack = from;
    StateSet result;
    for (const uint32_t state : from) seen_[state] = round_;
    while (!stack.empty()) {
      const uint32_t state = stack.back();
      stack.pop_back();
      ++steps;
      if (matters(state)) result.push_back(state);
      for (const Nfa::Jump jump : nfa_.states[state].jumps) {
        if (jump.when == Nfa::When::kAtBegin && !at_begin) continue;
        if (jump.when == Nfa::When::kAtEnd && !at_end) continue;
        if (seen_[jump.target] == round_) continue;
        seen_[jump.target] = round_;
        stack.push_back(jump.target);
      }
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  size_t steps = 0;

 private:
  bool matters(uint32_t index) const {
    const Nfa::State& state = nfa_.states[index];
    if (state.symbols || index == nfa_.accept) return true;
    return std::any_of(state.jumps.begin(), state.jumps.end(),
                       [](Nfa::Jump jump) { return jump.when == Nfa::When::kAtEnd; });
  }

  const Nfa& nfa_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
};

struct Event {
  uint32_t at;
  uint32_t state;
  bool begins;
};

// Calls edge(first, last, targets) for each largest range that leads to one set of targets; says
// how much work that was.
template <class Each>
size_t each_range(const Nfa& nfa, const StateSet& states, Each&& edge) {
  std::vector<Event> events;
  for (const uint32_t state : states) {
    if (!nfa.states[state].symbols) continue;
    for (const SymbolRange range : nfa.states[state].symbols->ranges()) {
      events.push_back({range.first, state, true});
      events.push_back({range.last + 1, state, false});
    }
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.at != b.at ? a.at < b.at : a.state < b.state;
  });
  size_t work = events.size();
  StateSet active;  // of sources, sorted
  for (size_t i = 0; i < events.size();) {
    const uint32_t at = events[i].at;
    for (; i < events.size() && events[i].at == at; ++i) {
      const auto place = std::lower_bound(active.begin(), active.end(), events[i].state);
      work += static_cast<size_t>(active.end() - place) / 16;
      if (events[i].begins) {
        active.insert(place, events[i].state);
      } else {
        // A range may end where the next of the same state begins only if they touch, which
        // SymbolSet has joined.
        active.erase(place);
      }
    }
    if (active.empty() || i == events.size()) continue;
    StateSet targets;
    for (const uint32_t state : active) targets.push_back(nfa.states[state].next);
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    work += 4 * targets.size();
    edge(at, events[i].at - 1, std::move(targets));
  }
  return work;
}

void add_edge(Dfa::State& state, Dfa::Edge edge) {
  if (!state.edges.empty() && state.edges.back().target == edge.target &&
      state.edges.back().last + 1 == edge.first) {
    state.edges.back().last = edge.last;
  } else {
    state.edges.push_back(edge);
  }
}

std::vector<bool> states_that_accept(const Dfa& dfa) {
  std::vector<std::vector<uint32_t>> sources(dfa.states.size());
  std::vector<uint32_t> stack;
  std::vector<bool> live(dfa.states.size());
  for (uint32_t state = 0; state < dfa.states.size(); ++state) {
    for (const Dfa::Edge& edge : dfa.states[state].edges) sources[edge.target].push_back(state);
    if (dfa.states[state].is_accepting) {
      live[state] = true;
      stack.push_back(state);
    }
  }
  while (!stack.empty()) {
    const uint32_t state = stack.back();
    stack.pop_back();
    for (const uint32_t source : sources[state]) {
      if (live[source]) continue;
      live[source] = true;
      stack.push_back(source);
    }
  }
  return live;
}

// Keeps the states with a class, one for each class; `class_of` kDead drops a state.
Dfa renumbered(const Dfa& dfa, const std::vector<uint32_t>& class_of) {
  std::vector<uint32_t> number(dfa.states.size(), kDead);
  Dfa result;
  std::vector<uint32_t> representatives;
  for (uint32_t state = 0; state < dfa.states.size(); ++state) {
    const uint32_t group = class_of[state];
    if (group == kDead || number[group] != kDead) continue;
    number[group] = static_cast<uint32_t>(representatives.size());
    representatives.push_back(state);
  }
  for (const uint32_t state : representatives) {
    Dfa::State copy{dfa.states[state].is_accepting, {}};
    for (const Dfa::Edge& edge : dfa.states[state].edges) {
      if (class_of[edge.target] == kDead) continue;
      add_edge(copy, {edge.first, edge.last, number[class_of[edge.target]]});
    }
    result.states.push_back(std::move(copy));
  }
  return result;
}

// Moore's partition refinement.
Dfa with_equal_states_joined(const Dfa& dfa) {
  std::vector<uint32_t> class_of(dfa.states.size());
  for (size_t i = 0; i < class_of.size(); ++i) class_of[i] = dfa.states[i].is_accepting ? 1 : 0;
  size_t class_count = 0;
  while (true) {
    std::map<std::vector<uint32_t>, uint32_t> classes;  // signature -> first state that has it
    std::vector<uint32_t> refined(class_of.size());
    for (uint32_t i = 0; i < refined.size(); ++i) {
      Dfa::State merged;
      for (const Dfa::Edge& edge : dfa.states[i].edges) {
        add_edge(merged, {edge.first, edge.last, class_of[edge.target]});
      }
      std::vector<uint32_t> signature{class_of[i]};
      for (const Dfa::Edge& edge : merged.edges) {
        signature.insert(signature.end(), {edge.first, edge.last, edge.target});
      }
      refined[i] = classes.try_emplace(std::move(signature), i).first->second;
    }
    class_of = std::move(refined);
    if (classes.size() == class_count) break;
    class_count = classes.size();
  }
  return renumbered(dfa, class_of);
}

}  // namespace

Dfa reduced(Dfa dfa) {
  if (dfa.empty()) return dfa;
  const std::vector<bool> live = states_that_accept(dfa);
  if (!live[0]) return {};
  std::vector<uint32_t> class_of(dfa.states.size(), kDead);
  for (uint32_t state = 0; state < class_of.size(); ++state) {
    if (live[state]) class_of[state] = state;
  }
  Dfa trimmed = renumbered(dfa, class_of);
  size_t edges = 0;
  for (const Dfa::State& state : trimmed.states) edges += state.edges.size();
  const bool is_large = trimmed.states.size() > kReduceStatesMax || edges > kReduceEdgesMax;
  return is_large ? trimmed : with_equal_states_joined(trimmed);
}

Result<Dfa> determinize(const Nfa& nfa, WorkBudget& budget) {
  Closure closure(nfa);
  std::map<StateSet, uint32_t> numbers;
  std::vector<const StateSet*> pending;
  Dfa dfa;
  const auto number_of = [&](StateSet set) {
    const auto [entry, is_new] =
        numbers.try_emplace(std::move(set), static_cast<uint32_t>(numbers.size()));
    if (is_new) pending.push_back(&entry->first);
    return entry->second;
  };
  number_of(closure.of({nfa.start}, true, false));
  for (size_t i = 0; i < pending.size(); ++i) {
    const StateSet set = *pending[i];
    Dfa::State state;
    const StateSet at_end = closure.of(set, i == 0, true);
    state.is_accepting = std::binary_search(at_end.begin(), at_end.end(), nfa.accept);
    const size_t work = each_range(nfa, set, [&](uint32_t first, uint32_t last, StateSet targets) {
      StateSet next = closure.of(targets, false, false);
      // Once a search has matched, the rest of the text does not matter.
      if (std::binary_search(next.begin(), next.end(), nfa.accept) &&
          nfa.states[nfa.accept].next == nfa.accept &&
          nfa.states[nfa.accept].symbols == &SymbolSet::scalar_values()) {
        next = {nfa.accept};
      }
      add_edge(state, {first, last, number_of(std::move(next))});
    });
    dfa.states.push_back(std::move(state));
    if (pending.size() > kDfaStatesMax) return too_many_states();
    if (!budget.spend(closure.steps + work + 1)) return too_much_work();
    closure.steps = 0;
  }
  return reduced(std::move(dfa));
}

namespace {

// A pair of states; kDead for "no longer a word of this one".
using Pair = std::pair<uint32_t, uint32_t>;

uint32_t target_at(const Dfa& dfa, uint32_t state, uint32_t symbol, uint32_t& last) {
  if (state == kDead) return kDead;
  const auto& edges = dfa.states[state].edges;
  const auto edge =
      std::lower_bound(edges.begin(), edges.end(), symbol,
                       [](const Dfa::Edge& entry, uint32_t value) { return entry.last < value; });
  if (edge == edges.end()) return kDead;
  if (edge->first > symbol) {
    last = std::min(last, edge->first - 1);
    return kDead;
  }
  last = std::min(last, edge->last);
  return edge->target;
}

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

// The next symbol at or after `symbol` with an edge, or kDead.
uint32_t next_symbol(const Dfa& dfa, uint32_t state, uint32_t symbol) {
  if (state == kDead) return kDead;
  for (const Dfa::Edge& edge : dfa.states[state].edges) {
    if (edge.last >= symbol) return std::max(edge.first, symbol);
  }
  return kDead;
}

}  // namespace

Result<Dfa> join(const Dfa& a, const Dfa& b, DfaJoin how, WorkBudget& budget) {
  std::map<Pair, uint32_t> numbers;
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
    uint32_t symbol = 0;
    while (true) {
      const uint32_t next =
          std::min(next_symbol(a, pair.first, symbol), next_symbol(b, pair.second, symbol));
      if (next == kDead) break;
      uint32_t last = kDead - 1;
      const uint32_t first_target = target_at(a, pair.first, next, last);
      const uint32_t second_target = target_at(b, pair.second, next, last);
      const Pair targets{first_target, second_target};
      if (!is_hopeless(targets, how)) add_edge(state, {next, last, number_of(targets)});
      symbol = last + 1;
      if (!budget.spend(8)) return too_much_work();
    }
    dfa.states.push_back(std::move(state));
    if (pending.size() > kDfaStatesMax) return too_many_states();
  }
  return reduced(std::move(dfa));
}

Dfa dfa_of_words(const std::vector<std::vector<uint32_t>>& words) {
  if (words.empty()) return {};
  std::vector<std::map<uint32_t, uint32_t>> children(1);
  std::vector<bool> is_word(1);
  for (const auto& word : words) {
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

Result<Dfa> dfa_of_length(const SymbolSet& set, uint32_t min, uint32_t max) {
  if (min > max) return Dfa{};
  const bool has_end = max != UINT32_MAX;
  const uint32_t last = has_end ? max : min;
  if (last >= kDfaStatesMax) return too_many_states();
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
    uint32_t last = kDead;
    state = target_at(dfa, state, symbol, last);
    if (state == kDead) return false;
  }
  return dfa.states[state].is_accepting;
}

}  // namespace lockstep

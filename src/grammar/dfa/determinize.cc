// Nfa to Dfa by the subset construction.
#include <algorithm>
#include <unordered_map>

#include "grammar/dfa/dfa.h"
#include "grammar/dfa/intern_table.h"

namespace lockstep {
namespace {

using StateSet = std::vector<uint32_t>;  // sorted

struct HashOfSet {
  size_t operator()(const StateSet& set) const {
    uint64_t hash = set.size();
    for (const uint32_t state : set) hash = mixed_hash(hash, state);
    return hash;
  }
};

// Follows jumps whose condition holds, and keeps the relevant states: those with symbols, the
// accepting one, and those with a jump at the end.
class Closure {
 public:
  Closure(const Nfa& nfa, WorkBudget& budget)
      : nfa_(nfa), budget_(budget), seen_(nfa.states.size(), 0) {}

  Result<StateSet> of(const StateSet& from, bool at_begin, bool at_end) {
    ++round_;
    StateSet stack = from;
    StateSet result;
    for (const uint32_t state : from) seen_[state] = round_;
    while (!stack.empty()) {
      const uint32_t state = stack.back();
      stack.pop_back();
      if (!budget_.spend(1 + nfa_.states[state].jumps.size() / 8)) return too_much_work();
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

 private:
  bool matters(uint32_t index) const {
    const Nfa::State& state = nfa_.states[index];
    if (state.symbols || index == nfa_.accept) return true;
    return std::any_of(state.jumps.begin(), state.jumps.end(),
                       [](Nfa::Jump jump) { return jump.when == Nfa::When::kAtEnd; });
  }

  const Nfa& nfa_;
  WorkBudget& budget_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
};

struct Event {
  uint32_t at;
  uint32_t state;
  bool begins;
};

// The starts and ends of the symbol ranges of `states`, in order.
Result<std::vector<Event>> events_of(const Nfa& nfa, const StateSet& states, WorkBudget& budget) {
  size_t ranges = 0;
  for (const uint32_t state : states) {
    if (nfa.states[state].symbols) ranges += nfa.states[state].symbols->ranges().size();
  }
  if (!budget.spend(4 * ranges)) return too_much_work();
  std::vector<Event> events;
  events.reserve(2 * ranges);
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
  return events;
}

// Calls edge(first, last, targets), which returns a Status, for each maximal range with one set of
// targets.
template <class Each>
Status each_range(const Nfa& nfa, const StateSet& states, WorkBudget& budget, Each&& edge) {
  const std::vector<Event> events = TRY(events_of(nfa, states, budget));
  StateSet active;  // of sources, sorted
  for (size_t i = 0; i < events.size();) {
    const uint32_t at = events[i].at;
    for (; i < events.size() && events[i].at == at; ++i) {
      const auto place = std::lower_bound(active.begin(), active.end(), events[i].state);
      if (!budget.spend(1 + static_cast<size_t>(active.end() - place) / 100)) {
        return too_much_work();
      }
      if (events[i].begins) {
        active.insert(place, events[i].state);
      } else {
        // The ranges of one state never touch, because SymbolSet has merged them.
        active.erase(place);
      }
    }
    if (active.empty() || i == events.size()) continue;
    if (!budget.spend(2 + active.size())) return too_much_work();
    StateSet targets;
    targets.reserve(active.size());
    for (const uint32_t state : active) targets.push_back(nfa.states[state].next);
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    TRY(edge(at, events[i].at - 1, std::move(targets)));
  }
  return Ok{};
}

class Subsets {
 public:
  Subsets(const Nfa& nfa, WorkBudget& budget) : nfa_(nfa), budget_(budget), closure_(nfa, budget) {}

  Result<Dfa> run() {
    (void)TRY(number_of(TRY(closure_.of({nfa_.start}, true, false))));
    for (size_t i = 0; i < pending_.size(); ++i) {
      const StateSet& set = *pending_[i];
      Dfa::State state;
      const StateSet at_end = TRY(closure_.of(set, i == 0, true));
      state.is_accepting = has_accept(at_end);
      TRY(each_range(nfa_, set, budget_,
                     [&](uint32_t first, uint32_t last, const StateSet& targets) -> Status {
                       const uint32_t next = TRY(number_behind(targets));
                       add_edge(state, {first, last, next});
                       return Ok{};
                     }));
      dfa_.states.push_back(std::move(state));
    }
    return reduced(std::move(dfa_), budget_);
  }

 private:
  bool has_accept(const StateSet& set) const {
    return std::binary_search(set.begin(), set.end(), nfa_.accept);
  }

  Result<uint32_t> number_behind(const StateSet& targets) {
    StateSet next = TRY(closure_.of(targets, false, false));
    // After a match, a search ignores the rest of the text.
    if (has_accept(next) && nfa_.states[nfa_.accept].next == nfa_.accept &&
        nfa_.states[nfa_.accept].symbols == &SymbolSet::scalar_values()) {
      next = {nfa_.accept};
    }
    return number_of(std::move(next));
  }

  Result<uint32_t> number_of(StateSet set) {
    if (!budget_.spend(4 + set.size() / 8)) return too_much_work();
    const auto [entry, is_new] =
        numbers_.try_emplace(std::move(set), static_cast<uint32_t>(numbers_.size()));
    if (is_new) pending_.push_back(&entry->first);
    if (pending_.size() > kDfaStatesMax) return too_many_dfa_states();
    return uint32_t{entry->second};
  }

  const Nfa& nfa_;
  WorkBudget& budget_;
  Closure closure_;
  std::unordered_map<StateSet, uint32_t, HashOfSet> numbers_;
  std::vector<const StateSet*> pending_;  // keys of numbers_, in the order of their numbers
  Dfa dfa_;
};

}  // namespace

Result<Dfa> determinize(const Nfa& nfa, WorkBudget& budget) {
  return Subsets(nfa, budget).run();
}

}  // namespace lockstep

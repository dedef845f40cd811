#include "grammar/automaton/text.h"

#include <algorithm>
#include <map>

#include "grammar/dfa/code_points.h"

namespace lockstep {
namespace {

// Aho and Corasick's automaton: a state is the longest suffix of the input that begins a marker.
class MarkerStates {
 public:
  explicit MarkerStates(const std::vector<std::vector<uint32_t>>& words) {
    for (const auto& word : words) add(word);
    find_fallbacks();
  }

  size_t count() const { return states_.size(); }
  // The state after a symbol; kMarker if that completes a marker.
  uint32_t after(uint32_t state, uint32_t symbol) const {
    while (true) {
      const auto next = states_[state].next.find(symbol);
      if (next != states_[state].next.end()) {
        return states_[next->second].ends_marker ? kMarker : next->second;
      }
      if (state == 0) return 0;
      state = states_[state].fallback;
    }
  }

  static constexpr uint32_t kMarker = UINT32_MAX;

 private:
  struct State {
    std::map<uint32_t, uint32_t> next;
    uint32_t fallback = 0;  // the longest suffix of this one that is also a state
    bool ends_marker = false;
  };

  void add(const std::vector<uint32_t>& word) {
    uint32_t state = 0;
    for (const uint32_t symbol : word) {
      const auto fresh = static_cast<uint32_t>(states_.size());
      const auto [entry, is_new] = states_[state].next.try_emplace(symbol, fresh);
      state = entry->second;
      if (is_new) states_.emplace_back();
    }
    states_[state].ends_marker = true;
  }

  void find_fallbacks() {
    std::vector<uint32_t> pending{0};
    for (size_t i = 0; i < pending.size(); ++i) {
      const uint32_t state = pending[i];
      for (const auto& [symbol, child] : states_[state].next) {
        pending.push_back(child);
        if (state == 0) continue;
        uint32_t from = states_[state].fallback;
        while (from != 0 && !states_[from].next.contains(symbol)) from = states_[from].fallback;
        const auto found = states_[from].next.find(symbol);
        if (found != states_[from].next.end()) states_[child].fallback = found->second;
        states_[child].ends_marker |= states_[states_[child].fallback].ends_marker;
      }
    }
  }

  std::vector<State> states_ = std::vector<State>(1);
};

}  // namespace

Result<Dfa> words_without(const std::vector<std::string>& markers, WorkBudget& budget) {
  constexpr size_t kMarkerCharactersMax = 1'000;  // in total: building is quadratic in them
  constexpr size_t kStepsOfSymbol = 2;
  std::vector<std::vector<uint32_t>> words;
  std::vector<SymbolRange> symbols;
  size_t characters = 0;
  for (const std::string& marker : markers) {
    if (marker.empty() || !is_valid_utf8(marker)) {
      return Error{ErrorCode::kInvalidArgument, "a marker must be text that is not empty"};
    }
    words.push_back(code_points(marker));
    characters += words.back().size();
    for (const uint32_t point : words.back()) symbols.push_back({point, point});
  }
  if (characters > kMarkerCharactersMax) {
    return Error{ErrorCode::kExhausted, "the markers of a text have more than the limit of " +
                                            std::to_string(kMarkerCharactersMax) +
                                            " characters together"};
  }
  const SymbolSet of_markers(std::move(symbols));
  const SymbolSet others = SymbolSet::scalar_values().without(of_markers);
  const MarkerStates states(words);
  if (!budget.spend(kStepsOfSymbol * states.count() * (characters + 1))) return too_much_work();
  std::vector<uint32_t> numbers(states.count(), UINT32_MAX);
  std::vector<uint32_t> pending{0};
  numbers[0] = 0;
  Dfa dfa;
  for (size_t i = 0; i < pending.size(); ++i) {
    const uint32_t read = pending[i];
    Dfa::State state{true, {}};
    const auto lead_to = [&](SymbolRange range, uint32_t target) {
      if (target == MarkerStates::kMarker) return;
      if (numbers[target] == UINT32_MAX) {
        numbers[target] = static_cast<uint32_t>(pending.size());
        pending.push_back(target);
      }
      state.edges.push_back({range.first, range.last, numbers[target]});
    };
    for (const SymbolRange range : others.ranges()) lead_to(range, 0);
    for (const SymbolRange range : of_markers.ranges()) {
      for (uint32_t symbol = range.first; symbol <= range.last; ++symbol) {
        lead_to({symbol, symbol}, states.after(read, symbol));
      }
    }
    std::sort(state.edges.begin(), state.edges.end(),
              [](const Dfa::Edge& a, const Dfa::Edge& b) { return a.first < b.first; });
    dfa.states.push_back(std::move(state));
  }
  return dfa;
}

Result<Grammar::Expression> text_without(Grammar& grammar,
                                         const std::vector<std::string>& markers) {
  const Dfa words = TRY(words_without(markers, grammar.budget()));
  return grammar.text(words, CharacterCoding::kUtf8);
}

}  // namespace lockstep

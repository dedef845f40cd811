// Finite automata over ranges of symbols, for strings (code points) and numbers (bytes).
// Deterministic ones can be intersected, subtracted and tested for emptiness, which combines the
// keywords of a schema exactly. Used by the regex and JSON-schema front ends; Grammar::text() and
// bytes() take the result. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "grammar/dfa/limits.h"
#include "grammar/dfa/symbol_set.h"

namespace lockstep {

// State 0 is the start. A symbol without an edge is rejected. No states: the empty language.
struct Dfa {
  struct Edge {
    uint32_t first;
    uint32_t last;
    uint32_t target;
  };
  struct State {
    bool is_accepting = false;
    std::vector<Edge> edges;  // sorted, without overlap
  };
  std::vector<State> states;

  bool empty() const { return states.empty(); }
};

// Nondeterministic, with the two assertions of a regex.
struct Nfa {
  enum class When : uint8_t { kAlways, kAtBegin, kAtEnd };
  struct Jump {
    uint32_t target;
    When when;
  };
  struct State {
    const SymbolSet* symbols = nullptr;  // that lead to `next`; not owned
    uint32_t next = 0;
    std::vector<Jump> jumps;  // without a symbol
  };
  std::vector<State> states;
  uint32_t start = 0;
  uint32_t accept = 0;
};

// No result has dead states. kExhausted above kDfaStatesMax states.
Result<Dfa> determinize(const Nfa& nfa, WorkBudget& budget);

enum class DfaJoin { kBoth, kFirstOnly, kEither };
// The words in both, in `a` but not `b`, or in either.
Result<Dfa> join(const Dfa& a, const Dfa& b, DfaJoin how, WorkBudget& budget);

// Drops dead states, and merges equivalent ones if there are few.
Result<Dfa> reduced(Dfa dfa, WorkBudget& budget);

Result<Dfa> dfa_of_words(const std::vector<std::vector<uint32_t>>& words, WorkBudget& budget);
// Words of min to max symbols of `set`; max = UINT32_MAX: unlimited.
Result<Dfa> dfa_of_length(const SymbolSet& set, uint32_t min, uint32_t max, WorkBudget& budget);
// Appends to the state's edges, merging with the last one if they are adjacent and have the same
// target.
void add_edge(Dfa::State& state, Dfa::Edge edge);
Error too_many_dfa_states();
bool dfa_accepts(const Dfa& dfa, const std::vector<uint32_t>& symbols);

}  // namespace lockstep

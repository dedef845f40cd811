// Finite automata over ranges of symbols: what a string may be (code points), or a number (bytes).
// A deterministic one can be intersected, subtracted and asked whether it is empty, which is how
// keywords of a schema are joined exactly. Used by the regex and JSON-schema front ends; a Grammar
// takes the result (grammar/text.h). Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "grammar/limits.h"
#include "grammar/symbol_set.h"

namespace lockstep {

// State 0 is the start. What has no edge is refused. No states: the empty language.
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
    const SymbolSet* symbols = nullptr;  // what leads on to `next`; not owned
    uint32_t next = 0;
    std::vector<Jump> jumps;  // without a symbol
  };
  std::vector<State> states;
  uint32_t start = 0;
  uint32_t accept = 0;
};

// All results have no state that leads nowhere. kExhausted above kDfaStatesMax states.
Result<Dfa> determinize(const Nfa& nfa, WorkBudget& budget);

enum class DfaJoin { kBoth, kFirstOnly, kEither };
// The words of both, of `a` and not of `b`, or of any of the two.
Result<Dfa> join(const Dfa& a, const Dfa& b, DfaJoin how, WorkBudget& budget);

// Drops states from which nothing is accepted, and joins equal states where there are few.
Dfa reduced(Dfa dfa);

Dfa dfa_of_words(const std::vector<std::vector<uint32_t>>& words);
// Words of min to max symbols of `set`; no end with max = UINT32_MAX.
Result<Dfa> dfa_of_length(const SymbolSet& set, uint32_t min, uint32_t max);
bool dfa_accepts(const Dfa& dfa, const std::vector<uint32_t>& symbols);

}  // namespace lockstep

// GrammarCache: the grammars that a rank knows, by the numbers that rank 0 gives them, and the
// rules of sequences that obey one. Sequences of one grammar share what the matcher has learnt. The
// engine's thread uses it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/choices/grammar_maker.h"
#include "grammar/automaton/matcher.h"
#include "sampling/token_rules.h"

namespace lockstep {

class GrammarCache {
 public:
  // `maker` must outlive it.
  explicit GrammarCache(GrammarMaker& maker) : maker_(maker) {}

  // Starts making the grammar of this number, replacing any earlier one.
  void set(int32_t grammar, std::string constraint, std::vector<int32_t> end_tokens);
  void forget(int32_t grammar);
  void clear() { entries_.clear(); }

  bool is_made(int32_t grammar) const;
  // Once is_made(): its number of positions, or why it could not be made.
  Result<size_t> outcome(int32_t grammar) const;

  // For a new text. Waits until the grammar is made.
  Result<std::unique_ptr<TokenRules>> rules(int32_t grammar);

 private:
  struct Entry {
    std::shared_ptr<const GrammarMaker::Order> order;
    std::optional<MadeGrammar> made;
    std::optional<Matcher> matcher;  // at the beginning of a text
  };

  GrammarMaker& maker_;
  std::vector<Entry> entries_;
};

}  // namespace lockstep

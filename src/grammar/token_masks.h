// TokenMasks: for a state of an automaton the tokens that may follow, as bits, by one walk over the
// vocabulary's tree; made once for each state and kept. Inside JSON strings nearly all of the mask
// is there before. Part of Matcher; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton.h"
#include "grammar/free_text.h"
#include "grammar/vocabulary_trie.h"

namespace lockstep {

class TokenMasks {
 public:
  // Both must outlive it.
  TokenMasks(GrammarAutomaton& automaton, const VocabularyTrie& vocabulary)
      : automaton_(automaton), vocabulary_(vocabulary) {}

  // May collect the automaton's states: `state` is read before that, and must be held.
  void mask(GrammarAutomaton::StateId state, std::span<uint64_t> words);

 private:
  using StateId = GrammarAutomaton::StateId;

  void build(StateId state, std::span<uint64_t> words);
  void walk(const VocabularyTrie::Tree& tree, uint32_t characters_done, std::span<uint64_t> words);
  bool allows_subtree(const VocabularyTrie::Node& node, StateId state, uint32_t node_count);
  uint32_t plain_characters(StateId state);
  uint32_t free_characters(StateId state, FreeKind kind);
  void forget();

  GrammarAutomaton& automaton_;
  const VocabularyTrie& vocabulary_;
  std::unordered_map<StateId, std::vector<uint64_t>> kept_;
  uint64_t kept_of_collection_ = 0;
  std::array<std::vector<uint32_t>, 2> free_;  // of each kind and state
  uint64_t work_max_ = 0;                      // of the automaton, for the mask that is being made
  std::vector<StateId> path_;  // the states along the current branch of the tree, by depth
};

}  // namespace lockstep

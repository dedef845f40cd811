// TokenMasks: for a state of an automaton the tokens that may follow, as bits, by one walk over the
// vocabulary's tree; made once for each state and kept. Inside JSON strings nearly all of the mask
// is there before; in free text all tokens are taken and those that may not follow are taken out,
// which are few and stand below the characters that do not leave the automaton where it is. Part of
// Matcher; one thread.
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

  // What the mask has of a tree before the walk.
  struct Ready {
    bool has_all = false;          // all tokens: the walk takes out those that may not follow
    uint32_t characters_done = 0;  // else all tokens of so many characters: the walk adds others
  };

  // The characters that lead from a state back to it; of those beyond ASCII that is said until it
  // is asked for and checked, which takes longest.
  struct Staying {
    CharacterKinds characters;
    bool is_known = false;
    bool is_checked = false;
  };

  void build(StateId state, std::span<uint64_t> words);
  void walk(const VocabularyTrie::Tree& tree, Ready ready, std::span<uint64_t> words);
  bool is_mostly_free(const VocabularyTrie::Tree& tree, StateId state);
  bool stays(const CharacterKinds& characters, StateId state, bool is_small);
  Staying& staying(StateId state);
  bool allows_subtree(const VocabularyTrie::Node& node, StateId state, uint32_t node_count);
  uint32_t plain_characters(StateId state);
  uint32_t free_characters(StateId state, FreeKind kind);
  void forget();

  GrammarAutomaton& automaton_;
  const VocabularyTrie& vocabulary_;
  std::unordered_map<StateId, std::vector<uint64_t>> kept_;
  uint64_t kept_of_collection_ = 0;
  std::array<std::vector<uint32_t>, 2> free_;  // of each kind and state
  std::vector<Staying> staying_;               // of each state
  uint64_t work_max_ = 0;                      // of the automaton, for the mask that is being made
  std::vector<StateId> path_;  // the states along the current branch of the tree, by depth
};

}  // namespace lockstep

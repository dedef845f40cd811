// TokenMasks: the tokens that may follow a state of an automaton, as bits, found by one walk over
// the vocabulary's tree and cached per state. Inside JSON strings most of the mask is prepared in
// advance; in free text the mask starts with all tokens, and the few that may not follow, which lie
// below characters that change the automaton's state, are removed. Part of Matcher; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/automaton.h"
#include "grammar/automaton/free_text.h"
#include "grammar/automaton/vocabulary_trie.h"

namespace lockstep {

class TokenMasks {
 public:
  // Both must outlive this.
  TokenMasks(GrammarAutomaton& automaton, const VocabularyTrie& vocabulary)
      : automaton_(automaton), vocabulary_(vocabulary) {}

  // May collect the automaton's states, so `state` must be held.
  void mask(GrammarAutomaton::StateId state, std::span<uint64_t> words);

 private:
  using StateId = GrammarAutomaton::StateId;

  // The tokens of a tree that are in the mask before the walk.
  struct Ready {
    bool has_all = false;          // all tokens: the walk removes those that may not follow
    uint32_t characters_done = 0;  // else all tokens up to this length: the walk adds others
  };

  // The characters that lead from a state back to it. Those beyond ASCII are assumed to, until they
  // are needed and checked, which is slow.
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
  std::array<std::vector<uint32_t>, 2> free_;  // by kind and state
  std::vector<Staying> staying_;               // by state
  uint64_t work_max_ = 0;                      // limit of automaton_.work() for the current mask
  std::vector<StateId> path_;  // the states along the current branch of the tree, by depth
};

}  // namespace lockstep

#include "grammar/token_masks.h"

#include <algorithm>

#include "grammar/limits.h"

namespace lockstep {
namespace {

// Subtrees of fewer nodes are walked sooner than it is found out whether they can be skipped.
constexpr uint32_t kLargeSubtree = 64;
constexpr uint32_t kUnknown = UINT32_MAX - 1;
// So many nodes are visited between two looks at the limits.
constexpr uint32_t kVisitsMax = 1024;

void set_bit(std::span<uint64_t> words, int32_t token) {
  words[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

}  // namespace

void TokenMasks::forget() {
  for (auto& known : free_) known.clear();
}

void TokenMasks::mask(StateId state, std::span<uint64_t> words) {
  if (kept_of_collection_ != automaton_.collection_count()) {
    kept_.clear();
    forget();
    kept_of_collection_ = automaton_.collection_count();
  }
  const auto known = kept_.find(state);
  if (known != kept_.end()) {
    std::copy(known->second.begin(), known->second.end(), words.begin());
    return;
  }
  build(state, words);
  if (kept_of_collection_ != automaton_.collection_count()) return;  // `state` has a new number
  if (kept_.size() >= kCachedMasksMax) kept_.clear();
  kept_.emplace(state, std::vector<uint64_t>(words.begin(), words.end()));
}

void TokenMasks::build(StateId state, std::span<uint64_t> words) {
  const uint32_t characters = plain_characters(state);
  const auto ready = vocabulary_.plain_mask(characters);
  std::copy(ready.begin(), ready.end(), words.begin());
  for (const int32_t token : automaton_.tokens(state)) {
    if (token >= 0 && token < vocabulary_.token_count() && vocabulary_.bytes_of(token).empty()) {
      set_bit(words, token);
    }
  }
  if (automaton_.is_accepting(state)) {
    for (const int32_t token : vocabulary_.end_tokens()) set_bit(words, token);
  }
  work_max_ = automaton_.work() + kMaskWorkMax;
  path_.assign(vocabulary_.token_bytes_max() + 1, GrammarAutomaton::kDead);
  path_[0] = state;
  walk(vocabulary_.plain(), vocabulary_.plain_mask_characters(characters), words);
  walk(vocabulary_.others(), 0, words);
}

// How many plain characters, any of them, may follow: in a string of a schema the automaton knows;
// what patterns leave free is found out once for each state.
uint32_t TokenMasks::plain_characters(StateId state) {
  const uint32_t known = automaton_.plain_characters(state);
  if (known > 0) return known;
  return free_characters(state, FreeKind::kPlainCharacters);
}

uint32_t TokenMasks::free_characters(StateId state, FreeKind kind) {
  auto& known = free_[static_cast<size_t>(kind)];
  if (state >= known.size()) known.resize(automaton_.state_count(), kUnknown);
  if (known[state] != kUnknown) return known[state];
  const FreeText found = free_text(automaton_, state, kind);
  known.resize(automaton_.state_count(), kUnknown);
  for (const FreeText::After& after : found.after) known[after.state] = after.characters;
  return known[state] = found.characters;
}

// Whether all tokens below a node of the plain tree may follow, `state` being where the node leads.
bool TokenMasks::allows_subtree(const VocabularyTrie::Node& node, StateId state,
                                uint32_t node_count) {
  const auto longest = static_cast<uint32_t>(node.characters_max - node.characters);
  if (automaton_.plain_characters(state) >= longest) return true;
  if (node_count <= kLargeSubtree) return false;
  return (node.is_word_below && free_characters(state, FreeKind::kAsciiWords) >= longest) ||
         plain_characters(state) >= longest;
}

// Tokens of at most `characters_done` characters are in the mask already.
void TokenMasks::walk(const VocabularyTrie::Tree& tree, uint32_t characters_done,
                      std::span<uint64_t> words) {
  const bool is_plain = &tree == &vocabulary_.plain();
  const auto node_count = static_cast<uint32_t>(tree.node_count());
  uint32_t visits = 0;
  for (uint32_t index = 0; index < node_count;) {
    const VocabularyTrie::Node& node = tree.nodes[index];
    if (characters_done > 0 && node.characters_max <= characters_done) {
      index = node.end;
      continue;
    }
    const StateId next = automaton_.step(path_[node.depth - 1U], node.byte);
    if (next == GrammarAutomaton::kDead) {
      index = node.end;
      continue;
    }
    path_[node.depth] = next;
    const bool skips = is_plain && node.is_boundary && allows_subtree(node, next, node.end - index);
    const uint32_t following = skips ? node.end : index + 1;
    const uint32_t last = tree.nodes[following].tokens;
    for (uint32_t i = node.tokens; i < last; ++i) set_bit(words, tree.tokens[i]);
    index = following;
    if (++visits < kVisitsMax) continue;
    visits = 0;
    if (automaton_.work() > work_max_) return automaton_.overload();
    if (automaton_.needs_collection()) {
      automaton_.collect(std::span(path_).first(node.depth + 1U));
      forget();
    }
  }
}

}  // namespace lockstep

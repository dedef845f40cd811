#include "grammar/token_masks.h"

#include <algorithm>

#include "grammar/limits.h"

namespace lockstep {
namespace {

void set_bit(std::span<uint64_t> words, int32_t token) {
  words[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

}  // namespace

void TokenMasks::mask(StateId state, std::span<uint64_t> words) {
  if (kept_of_collection_ != automaton_.collection_count()) {
    kept_.clear();
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
  const uint32_t characters = automaton_.plain_characters(state);
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
  path_.assign(1, state);
  walk(vocabulary_.plain(), vocabulary_.plain_mask_characters(characters), words);
  walk(vocabulary_.others(), 0, words);
}

// Tokens of at most `characters_done` characters are in the mask already.
void TokenMasks::walk(const VocabularyTrie::Tree& tree, uint32_t characters_done,
                      std::span<uint64_t> words) {
  const bool is_plain = &tree == &vocabulary_.plain();
  const auto node_count = static_cast<uint32_t>(tree.node_count());
  for (uint32_t index = 0; index < node_count;) {
    const VocabularyTrie::Node& node = tree.nodes[index];
    if (is_plain && node.characters_max <= characters_done) {
      index = node.end;
      continue;
    }
    path_.resize(node.depth);
    const StateId next = automaton_.step(path_.back(), node.byte);
    if (next == GrammarAutomaton::kDead) {
      index = node.end;
      continue;
    }
    uint32_t last = tree.nodes[index + 1].tokens;
    uint32_t following = index + 1;
    if (is_plain && node.is_boundary &&
        automaton_.plain_characters(next) >=
            static_cast<uint32_t>(node.characters_max - node.characters)) {
      last = tree.nodes[node.end].tokens;
      following = node.end;
    }
    for (uint32_t i = node.tokens; i < last; ++i) set_bit(words, tree.tokens[i]);
    path_.push_back(next);
    index = following;
    if (automaton_.needs_collection()) automaton_.collect(path_);
  }
  path_.resize(1);
}

}  // namespace lockstep

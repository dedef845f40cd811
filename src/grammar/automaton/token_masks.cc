#include "grammar/automaton/token_masks.h"

#include <algorithm>

#include "grammar/dfa/limits.h"

namespace lockstep {
namespace {

// Smaller subtrees are walked, which is faster than checking whether they can be skipped.
constexpr uint32_t kLargeSubtree = 64;
// With more stop characters than this, a state is not treated as free text.
constexpr int kFreeTextStopsMax = 8;
constexpr uint32_t kUnknown = UINT32_MAX - 1;
// Nodes visited between two checks of the limits.
constexpr uint32_t kVisitsMax = 1024;

void set_bit(std::span<uint64_t> words, int32_t token) {
  words[static_cast<size_t>(token) / 64] |= uint64_t{1} << (token % 64);
}

void set_bits(std::span<uint64_t> words, std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) set_bit(words, token);
}

void clear_bits(std::span<uint64_t> words, std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    words[static_cast<size_t>(token) / 64] &= ~(uint64_t{1} << (token % 64));
  }
}

}  // namespace

void TokenMasks::forget() {
  for (auto& known : free_) known.clear();
  staying_.clear();
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
  work_max_ = automaton_.work() + kMaskWorkMax;
  path_.assign(vocabulary_.token_bytes_max() + 1, GrammarAutomaton::kDead);
  path_[0] = state;
  Ready plain{.has_all = automaton_.plain_characters(state) == 0 &&
                         is_mostly_free(vocabulary_.plain(), state)};
  const uint32_t characters = plain.has_all ? UINT32_MAX : plain_characters(state);
  if (!plain.has_all) plain.characters_done = vocabulary_.plain_mask_characters(characters);
  // In JSON strings most of the other tokens may not follow.
  const Ready others{.has_all = plain.has_all && is_mostly_free(vocabulary_.others(), state)};
  const auto ready = vocabulary_.plain_mask(characters);
  std::copy(ready.begin(), ready.end(), words.begin());
  if (others.has_all) {
    const auto all = vocabulary_.others_mask();
    for (size_t i = 0; i < words.size(); ++i) words[i] |= all[i];
  }
  for (const int32_t token : automaton_.tokens(state)) {
    if (token >= 0 && token < vocabulary_.token_count() && vocabulary_.bytes_of(token).empty()) {
      set_bit(words, token);
    }
  }
  if (automaton_.is_accepting(state)) {
    for (const int32_t token : vocabulary_.end_tokens()) set_bit(words, token);
  }
  walk(vocabulary_.plain(), plain, words);
  walk(vocabulary_.others(), others, words);
}

// Whether for nearly all tokens of a tree the automaton returns to its state after each character,
// or after all but the first.
bool TokenMasks::is_mostly_free(const VocabularyTrie::Tree& tree, StateId state) {
  const auto weight = [&](bool only_free) {
    size_t tokens = 0;
    for (uint32_t index = 0; index < tree.node_count(); index = tree.nodes[index].end) {
      const VocabularyTrie::Node& node = tree.nodes[index];
      const StateId next = automaton_.step(state, node.byte);
      if (next == GrammarAutomaton::kDead || node.end - index <= kLargeSubtree) continue;
      if (only_free &&
          tree.characters_below[index].count_beyond(
              staying(node.is_boundary ? next : state).characters) > kFreeTextStopsMax) {
        continue;
      }
      tokens += tree.nodes[node.end].tokens - node.tokens;
    }
    return tokens;
  };
  const size_t most = tree.tokens.size() / 2;
  return weight(false) > most && weight(true) > most;
}

// Whether all of these characters leave the automaton in its state. False for small subtrees in a
// new state: walking them is faster.
bool TokenMasks::stays(const CharacterKinds& characters, StateId state, bool is_small) {
  if (is_small && (state >= staying_.size() || !staying_[state].is_known)) return false;
  Staying& known = staying(state);
  if (!characters.is_within(known.characters)) return false;
  if (known.is_checked || !characters.has(CharacterKinds::kBeyondAscii)) return true;
  if (is_small) return false;
  const bool stays_beyond = beyond_ascii_stays(automaton_, state);
  Staying& checked = staying(state);
  checked.is_checked = true;
  if (!stays_beyond) checked.characters.remove(CharacterKinds::kBeyondAscii);
  return stays_beyond;
}

TokenMasks::Staying& TokenMasks::staying(StateId state) {
  if (state >= staying_.size()) staying_.resize(automaton_.state_count());
  if (!staying_[state].is_known) {
    CharacterKinds characters = staying_ascii(automaton_, state);
    characters.add(CharacterKinds::kBeyondAscii);
    staying_[state] = {.characters = characters, .is_known = true, .is_checked = false};
  }
  return staying_[state];
}

// How many arbitrary plain characters may follow: in a schema's string the automaton knows; for
// patterns it is computed once per state.
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

// Whether all tokens below a node of the plain tree may follow; `state` is the state after the
// node.
bool TokenMasks::allows_subtree(const VocabularyTrie::Node& node, StateId state,
                                uint32_t node_count) {
  const auto longest = static_cast<uint32_t>(node.characters_max - node.characters);
  if (automaton_.plain_characters(state) >= longest) return true;
  if (node_count <= kLargeSubtree) return false;
  return (node.is_word_below && free_characters(state, FreeKind::kAsciiWords) >= longest) ||
         plain_characters(state) >= longest;
}

void TokenMasks::walk(const VocabularyTrie::Tree& tree, Ready ready, std::span<uint64_t> words) {
  const bool is_plain = &tree == &vocabulary_.plain();
  const auto node_count = static_cast<uint32_t>(tree.node_count());
  uint32_t visits = 0;
  for (uint32_t index = 0; index < node_count;) {
    const VocabularyTrie::Node& node = tree.nodes[index];
    if (ready.characters_done > 0 && node.characters_max <= ready.characters_done) {
      index = node.end;
      continue;
    }
    const StateId next = automaton_.step(path_[node.depth - 1U], node.byte);
    if (next == GrammarAutomaton::kDead) {
      if (ready.has_all) clear_bits(words, tree.tokens_of(index, node.end));
      index = node.end;
      continue;
    }
    path_[node.depth] = next;
    const bool skips =
        node.is_boundary &&
        (stays(tree.characters_below[index], next, node.end - index <= kLargeSubtree) ||
         (is_plain && allows_subtree(node, next, node.end - index)));
    const uint32_t following = skips ? node.end : index + 1;
    if (!ready.has_all) set_bits(words, tree.tokens_of(index, following));
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

// Matcher: follows one text under a grammar, token by token, and computes which tokens may follow.
//
//   auto trie = TRY(VocabularyTrie::build(tokenizer, end_tokens));        // once for a tokenizer
//   auto compiled = TRY(compile_grammar(grammar, root));                  // once for a grammar
//   Matcher matcher(compiled, trie);                                      // once for an answer
//   if (matcher.accept_token(sampled)) ...                                // usually enough
//   else { TRY(matcher.mask(words)); ... sample again ... }               // only on refusal
//
// A state is one number, so that a copy (n > 1, speculation) and rollback() cost nearly nothing.
// Copies and restarted() matchers share the automaton and the cached masks, and so belong to one
// thread; separately constructed matchers share only immutable data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/automaton/compiled_grammar.h"
#include "grammar/automaton/vocabulary_trie.h"

namespace lockstep {

class Matcher {
 public:
  // Without a vocabulary only accept_bytes() and may_end() work.
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar,
                   std::shared_ptr<const VocabularyTrie> vocabulary = nullptr);
  Matcher(const Matcher& other);
  Matcher& operator=(const Matcher& other);
  ~Matcher();

  // A matcher at the beginning of a new text of the same grammar, sharing this one's caches.
  Matcher restarted() const;

  // Whether `token` may follow; accept_token() also advances if so. An end token may follow where
  // the text may end, and nothing may follow it.
  bool accepts_token(int32_t token);
  bool accept_token(int32_t token);
  // The same for bytes that are not a token; one step of rollback().
  bool accepts_bytes(std::string_view bytes);
  bool accept_bytes(std::string_view bytes);

  bool may_end() const;
  // Only an end token may follow.
  bool must_end() const;
  bool has_ended() const { return has_ended_; }

  // Sets bit t % 64 of words[t / 64] for each token t that may follow, clears all others. `words`
  // has vocabulary.mask_words() entries. kExhausted if the grammar has more readings of the text
  // than kStepThreadsMax.
  Status mask(std::span<uint64_t> words);

  // The bytes that must come next, at most `bytes_max`. Does not accept them.
  std::string forced_bytes(size_t bytes_max);

  // Undoes the last `count` accepted tokens; false, without effect, if there were fewer or `count`
  // exceeds kRollbackTokensMax.
  bool rollback(size_t count);

  // States in the automaton, for tests of its limits.
  size_t state_count() const;

 private:
  struct Shared;
  explicit Matcher(std::shared_ptr<Shared> shared);

  uint32_t state() const { return states_.back(); }
  uint32_t state_after(std::string_view bytes);
  uint32_t state_after_token(int32_t token);
  void move_to(uint32_t state);
  void collect_if_needed();

  std::shared_ptr<Shared> shared_;
  std::vector<uint32_t> states_;  // the start, then one after each accepted token
  bool has_ended_ = false;
};

}  // namespace lockstep

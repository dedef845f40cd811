// Matcher: one text under a grammar, as it grows token by token. Says which tokens may follow.
//
//   auto trie = TRY(VocabularyTrie::build(tokenizer, end_tokens));        // once for a tokenizer
//   auto compiled = TRY(compile_grammar(grammar, root));                  // once for a grammar
//   Matcher matcher(compiled, trie);                                      // once for an answer
//   if (matcher.accept_token(sampled)) ...                                // usually enough
//   else { TRY(matcher.mask(words)); ... sample again ... }               // only on refusal
//
// A state is one number, so that a copy (n > 1, speculation) and rollback() cost nearly nothing.
// Copies and restarted() matchers share what the automaton has learnt and the masks, and so belong
// to one thread; matchers that were constructed apart share nothing that changes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/compiled_grammar.h"
#include "grammar/vocabulary_trie.h"

namespace lockstep {

class Matcher {
 public:
  // Without a vocabulary only bytes are understood: accept_bytes() and may_end().
  explicit Matcher(std::shared_ptr<const CompiledGrammar> grammar,
                   std::shared_ptr<const VocabularyTrie> vocabulary = nullptr);
  Matcher(const Matcher& other);
  Matcher& operator=(const Matcher& other);
  ~Matcher();

  // One at the beginning of a new text of the same grammar, which has all that this one learnt.
  Matcher restarted() const;

  // Whether `token` may follow; accept_token() also moves on if so, else changes nothing. An end
  // token may follow where the text may end, and after it nothing may.
  bool accepts_token(int32_t token);
  bool accept_token(int32_t token);
  // The same for text that is no token; one step of rollback().
  bool accepts_bytes(std::string_view bytes);
  bool accept_bytes(std::string_view bytes);

  bool may_end() const;
  // Nothing but an end token may follow.
  bool must_end() const;
  bool has_ended() const { return has_ended_; }

  // Sets bit t % 64 of words[t / 64] for each token t that may follow, clears all others. `words`
  // has vocabulary.mask_words() entries. kExhausted if the grammar has more readings of the text
  // than kStepThreadsMax.
  Status mask(std::span<uint64_t> words);

  // The bytes that must come next, whatever the model says; at most `bytes_max`. They are not
  // accepted by this.
  std::string forced_bytes(size_t bytes_max);

  // Takes back the last `count` accepted tokens; false, and nothing happens, if there were not so
  // many or more than kRollbackTokensMax ago.
  bool rollback(size_t count);

  // How many states the automaton keeps, for tests of its limits.
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

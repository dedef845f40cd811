// The planner's allowance for the tokenizer and the token trees of a rank that makes grammars,
// compared with the heap that they take.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "grammar/automaton/vocabulary_trie.h"
#include "planner/rank_load.h"
#include "support/qwen_tokenizer.h"
#include "tokenizer/tokenizer.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

using namespace lockstep;

namespace {

constexpr int kTreesMax = 4;  // as kept by engine/choices/grammar_maker.cc

// The heap bytes of this process; 0 if unknown.
size_t heap_bytes() {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

}  // namespace

TEST_CASE("the planner's allowance covers the tokenizer and the trees of a large vocabulary") {
  const auto json = qwen_tokenizer_json(LOCKSTEP_SOURCE_DIR "/tests/data/tokenizer/qwen2");
  REQUIRE(json.ok());
  const size_t before = heap_bytes();
  const auto tokenizer = Tokenizer::parse(json.value());
  REQUIRE_MESSAGE(tokenizer.ok(), (tokenizer.ok() ? "" : tokenizer.error().message));
  std::vector<std::shared_ptr<const VocabularyTrie>> trees;
  for (int32_t end_token = 0; end_token < kTreesMax; ++end_token) {
    auto tree = VocabularyTrie::build(*tokenizer.value(), std::vector<int32_t>{end_token});
    REQUIRE(tree.ok());
    trees.push_back(tree.value());
  }
  const size_t taken = heap_bytes() - before;
  const auto tokens = static_cast<size_t>(tokenizer.value()->vocab_size());
  CHECK(tokens > 150'000);
  if (taken == 0) {
    MESSAGE("not measured: this heap does not tell its size");
    return;
  }
  MESSAGE("bytes for each token: ", taken / tokens);
  CHECK(taken > 100 * tokens);
  CHECK(taken <= kGrammarBytesOfToken * tokens);
}

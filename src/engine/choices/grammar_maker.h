// GrammarMaker: makes grammars from constraints on its own thread, so that steps do not wait for
// grammars they do not need. It loads the model's tokenizer and builds its token tree on first use.
// Used by every rank that samples, and by rank 0.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "grammar/automaton/compiled_grammar.h"
#include "grammar/automaton/vocabulary_trie.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct MadeGrammar {
  std::shared_ptr<const CompiledGrammar> grammar;
  std::shared_ptr<const VocabularyTrie> vocabulary;
};

class GrammarMaker {
 public:
  // One requested grammar. Any thread.
  class Order {
   public:
    bool is_done() const;
    // kTimeout if it takes longer.
    Result<MadeGrammar> wait(std::chrono::milliseconds timeout) const;

   private:
    friend class GrammarMaker;
    mutable std::mutex mutex_;
    mutable std::condition_variable done_;
    std::optional<Result<MadeGrammar>> made_;
    std::string constraint_;
    std::vector<int32_t> end_tokens_;
  };

  // `on_made`: called on the maker's thread when an order is done; may be empty.
  GrammarMaker(std::filesystem::path model, std::function<void()> on_made);
  // Waits for the current grammar, about a second at most; waiting orders are dropped.
  ~GrammarMaker();
  GrammarMaker(const GrammarMaker&) = delete;
  GrammarMaker& operator=(const GrammarMaker&) = delete;

  // The caller limits how many are in progress. An order whose pointers are all gone is skipped.
  std::shared_ptr<const Order> make(std::string constraint, std::vector<int32_t> end_tokens);

 private:
  void run();
  Result<MadeGrammar> made(const Order& order);
  Result<std::shared_ptr<const VocabularyTrie>> vocabulary(std::vector<int32_t> end_tokens);

  const std::filesystem::path model_;
  const std::function<void()> on_made_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::weak_ptr<Order>> waiting_;
  bool is_over_ = false;

  // The thread's own.
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::shared_ptr<const VocabularyTrie>> vocabularies_;  // the latest last

  std::thread thread_;  // started by the first order
};

}  // namespace lockstep

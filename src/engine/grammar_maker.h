// GrammarMaker: makes grammars of constraints on a thread of its own, so that no step waits for one
// that need not. It loads the model's tokenizer and builds its tree of tokens when the first one is
// asked for. Used by every rank that samples, and by rank 0.
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
#include "grammar/compiled_grammar.h"
#include "grammar/vocabulary_trie.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

struct MadeGrammar {
  std::shared_ptr<const CompiledGrammar> grammar;
  std::shared_ptr<const VocabularyTrie> vocabulary;
};

class GrammarMaker {
 public:
  // One grammar that was asked for. Any thread.
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
  // Waits for the grammar at hand, which is a matter of a second; what waits is not made.
  ~GrammarMaker();
  GrammarMaker(const GrammarMaker&) = delete;
  GrammarMaker& operator=(const GrammarMaker&) = delete;

  // Who asks limits how many are under way. An order that nobody holds any more is left out.
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

  // Of the thread.
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::shared_ptr<const VocabularyTrie>> vocabularies_;  // the latest last

  std::thread thread_;  // from the first order on
};

}  // namespace lockstep

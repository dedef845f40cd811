#include "engine/choices/grammar_cache.h"

#include <chrono>
#include <utility>

#include "base/check.h"

namespace lockstep {
namespace {

// Compiling is limited to about a second, loading a large model's tokenizer takes as long, and a
// busy machine needs more. Ranks that wait for this one give up earlier.
constexpr std::chrono::seconds kMakingMax{30};
// A matcher that has learnt more than this is not kept for the next text.
constexpr size_t kLearntStatesMax = 20'000;

class MatcherRules final : public TokenRules {
 public:
  MatcherRules(Matcher matcher, std::shared_ptr<const VocabularyTrie> vocabulary)
      : matcher_(std::move(matcher)), vocabulary_(std::move(vocabulary)) {}

  bool allows(int32_t token) override { return matcher_.accepts_token(token); }
  const uint64_t* allowed() override {
    words_.resize(vocabulary_->mask_words());
    return matcher_.mask(words_).ok() ? words_.data() : nullptr;
  }
  int32_t token_count() const override { return vocabulary_->token_count(); }
  bool may_end() override { return matcher_.may_end(); }
  bool accept(int32_t token) override { return matcher_.accept_token(token); }
  bool take_back(size_t count) override { return matcher_.rollback(count); }

 private:
  Matcher matcher_;
  std::shared_ptr<const VocabularyTrie> vocabulary_;
  std::vector<uint64_t> words_;
};

}  // namespace

void GrammarCache::set(int32_t grammar, std::string constraint, std::vector<int32_t> end_tokens) {
  const auto index = static_cast<size_t>(grammar);
  if (index >= entries_.size()) entries_.resize(index + 1);
  entries_[index] = Entry{.order = maker_.make(std::move(constraint), std::move(end_tokens)),
                          .made = std::nullopt,
                          .matcher = std::nullopt};
}

void GrammarCache::forget(int32_t grammar) {
  if (static_cast<size_t>(grammar) < entries_.size()) entries_[static_cast<size_t>(grammar)] = {};
}

bool GrammarCache::is_made(int32_t grammar) const {
  return entries_[static_cast<size_t>(grammar)].order->is_done();
}

Result<size_t> GrammarCache::outcome(int32_t grammar) const {
  const Entry& entry = entries_[static_cast<size_t>(grammar)];
  const MadeGrammar made = TRY(entry.order->wait(std::chrono::milliseconds(0)));
  return made.grammar->positions.size();
}

Result<std::unique_ptr<TokenRules>> GrammarCache::rules(int32_t grammar) {
  const auto index = static_cast<size_t>(grammar);
  if (index >= entries_.size() || !entries_[index].order) {
    return Error{ErrorCode::kCorrupt, "a sequence has a grammar that rank 0 never sent"};
  }
  Entry& entry = entries_[index];
  if (!entry.made) entry.made = TRY(entry.order->wait(kMakingMax));
  if (!entry.matcher || entry.matcher->state_count() > kLearntStatesMax) {
    entry.matcher.emplace(entry.made->grammar, entry.made->vocabulary);
  }
  return std::unique_ptr<TokenRules>(
      std::make_unique<MatcherRules>(entry.matcher->restarted(), entry.made->vocabulary));
}

}  // namespace lockstep

#include "engine/choices/grammar_maker.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "grammar/constraint.h"

namespace lockstep {
namespace {

// One per set of end tokens; the requests of one model use one or two.
constexpr size_t kVocabulariesMax = 4;

}  // namespace

bool GrammarMaker::Order::is_done() const {
  std::lock_guard lock(mutex_);
  return made_.has_value();
}

Result<MadeGrammar> GrammarMaker::Order::wait(std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  if (!done_.wait_for(lock, timeout, [this] { return made_.has_value(); })) {
    return Error{ErrorCode::kTimeout,
                 fmt::format("a grammar was not compiled within {} ms", timeout.count())};
  }
  return *made_;
}

GrammarMaker::GrammarMaker(std::filesystem::path model, std::function<void()> on_made)
    : model_(std::move(model)), on_made_(std::move(on_made)) {}

GrammarMaker::~GrammarMaker() {
  {
    std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const GrammarMaker::Order> GrammarMaker::make(std::string constraint,
                                                              std::vector<int32_t> end_tokens) {
  auto order = std::make_shared<Order>();
  order->constraint_ = std::move(constraint);
  order->end_tokens_ = std::move(end_tokens);
  {
    std::lock_guard lock(mutex_);
    waiting_.push_back(order);
  }
  changed_.notify_all();
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  return order;
}

void GrammarMaker::run() {
  while (true) {
    std::shared_ptr<Order> order;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_over_ || !waiting_.empty(); });
      if (is_over_) return;
      order = waiting_.front().lock();
      waiting_.pop_front();
    }
    if (!order) continue;
    Result<MadeGrammar> result = made(*order);
    {
      std::lock_guard lock(order->mutex_);
      order->made_ = std::move(result);
    }
    order->done_.notify_all();
    if (on_made_) on_made_();
  }
}

Result<MadeGrammar> GrammarMaker::made(const Order& order) {
  if (!tokenizer_) tokenizer_ = TRY(Tokenizer::load(model_));
  MadeGrammar made;
  made.vocabulary = TRY(vocabulary(order.end_tokens_));
  made.grammar = TRY(compile_constraint(order.constraint_, *tokenizer_));
  return made;
}

// A model's files may name end tokens that its tokenizer does not have.
Result<std::shared_ptr<const VocabularyTrie>> GrammarMaker::vocabulary(
    std::vector<int32_t> end_tokens) {
  std::erase_if(end_tokens,
                [&](int32_t token) { return token < 0 || token >= tokenizer_->vocab_size(); });
  const auto known =
      std::find_if(vocabularies_.begin(), vocabularies_.end(), [&](const auto& vocabulary) {
        return std::ranges::equal(vocabulary->end_tokens(), end_tokens);
      });
  if (known != vocabularies_.end()) {
    std::rotate(known, known + 1, vocabularies_.end());
    return vocabularies_.back();
  }
  auto built = TRY(VocabularyTrie::build(*tokenizer_, end_tokens));
  if (vocabularies_.size() == kVocabulariesMax) vocabularies_.erase(vocabularies_.begin());
  vocabularies_.push_back(built);
  return built;
}

}  // namespace lockstep

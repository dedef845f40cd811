#include "grammar/automaton/matcher.h"

#include <algorithm>

#include "base/check.h"
#include "grammar/automaton/automaton.h"
#include "grammar/automaton/token_masks.h"
#include "grammar/dfa/limits.h"

namespace lockstep {

struct Matcher::Shared {
  Shared(std::shared_ptr<const CompiledGrammar> grammar,
         std::shared_ptr<const VocabularyTrie> the_vocabulary)
      : automaton(std::move(grammar)), vocabulary(std::move(the_vocabulary)) {
    if (vocabulary) masks = std::make_unique<TokenMasks>(automaton, *vocabulary);
  }

  GrammarAutomaton automaton;
  std::shared_ptr<const VocabularyTrie> vocabulary;
  std::unique_ptr<TokenMasks> masks;
};

Matcher::Matcher(std::shared_ptr<const CompiledGrammar> grammar,
                 std::shared_ptr<const VocabularyTrie> vocabulary)
    : Matcher(std::make_shared<Shared>(std::move(grammar), std::move(vocabulary))) {}

Matcher::Matcher(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {
  states_.push_back(shared_->automaton.start());
  shared_->automaton.hold(&states_);
}

Matcher::Matcher(const Matcher& other)
    : shared_(other.shared_), states_(other.states_), has_ended_(other.has_ended_) {
  shared_->automaton.hold(&states_);
}

Matcher& Matcher::operator=(const Matcher& other) {
  if (this == &other) return *this;
  shared_->automaton.release(&states_);
  shared_ = other.shared_;
  states_ = other.states_;
  has_ended_ = other.has_ended_;
  shared_->automaton.hold(&states_);
  return *this;
}

Matcher::~Matcher() {
  shared_->automaton.release(&states_);
}

Matcher Matcher::restarted() const {
  return Matcher(shared_);
}

uint32_t Matcher::state_after(std::string_view bytes) {
  uint32_t state = states_.back();
  for (const char byte : bytes) {
    state = shared_->automaton.step(state, static_cast<uint8_t>(byte));
    if (state == GrammarAutomaton::kDead) break;
  }
  return state;
}

uint32_t Matcher::state_after_token(int32_t token) {
  if (has_ended_ || !shared_->vocabulary) return GrammarAutomaton::kDead;
  const std::string_view bytes = shared_->vocabulary->bytes_of(token);
  const uint32_t state =
      bytes.empty() ? shared_->automaton.step_token(states_.back(), token) : state_after(bytes);
  return state;
}

void Matcher::collect_if_needed() {
  if (shared_->automaton.needs_collection()) shared_->automaton.collect({});
}

void Matcher::move_to(uint32_t state) {
  // The oldest are dropped in bulk.
  if (states_.size() > 2 * kRollbackTokensMax) {
    states_.erase(states_.begin(), states_.end() - (kRollbackTokensMax + 1));
  }
  states_.push_back(state);
  collect_if_needed();
}

bool Matcher::accepts_token(int32_t token) {
  if (has_ended_ || !shared_->vocabulary) return false;
  if (shared_->vocabulary->is_end(token) && may_end()) return true;
  const bool accepts = state_after_token(token) != GrammarAutomaton::kDead;
  collect_if_needed();
  return accepts;
}

bool Matcher::accept_token(int32_t token) {
  if (has_ended_ || !shared_->vocabulary) return false;
  if (shared_->vocabulary->is_end(token) && may_end()) {
    move_to(states_.back());
    has_ended_ = true;
    return true;
  }
  const uint32_t next = state_after_token(token);
  if (next == GrammarAutomaton::kDead) return false;
  move_to(next);
  return true;
}

bool Matcher::accepts_bytes(std::string_view bytes) {
  const bool accepts = !has_ended_ && state_after(bytes) != GrammarAutomaton::kDead;
  collect_if_needed();
  return accepts;
}

bool Matcher::accept_bytes(std::string_view bytes) {
  if (has_ended_) return false;
  const uint32_t next = state_after(bytes);
  if (next == GrammarAutomaton::kDead) return false;
  move_to(next);
  return true;
}

bool Matcher::may_end() const {
  return !has_ended_ && shared_->automaton.is_accepting(states_.back());
}

bool Matcher::must_end() const {
  if (!may_end()) return false;
  GrammarAutomaton& automaton = shared_->automaton;
  if (!automaton.tokens(states_.back()).empty()) return false;
  for (int byte = 0; byte < 256; ++byte) {
    if (automaton.step(states_.back(), static_cast<uint8_t>(byte)) != GrammarAutomaton::kDead) {
      return false;
    }
  }
  return true;
}

Status Matcher::mask(std::span<uint64_t> words) {
  LOCKSTEP_CHECK(shared_->masks && words.size() == shared_->vocabulary->mask_words());
  if (has_ended_) {
    std::fill(words.begin(), words.end(), 0);
    return Ok{};
  }
  shared_->masks->mask(states_.back(), words);
  if (shared_->automaton.is_overloaded()) {
    return Error{ErrorCode::kExhausted, "the grammar can be read in more than the limit of " +
                                            std::to_string(kStepThreadsMax) +
                                            " ways at once; make it less ambiguous"};
  }
  return Ok{};
}

std::string Matcher::forced_bytes(size_t bytes_max) {
  std::string forced;
  GrammarAutomaton& automaton = shared_->automaton;
  uint32_t state = states_.back();
  while (!has_ended_ && forced.size() < bytes_max && !automaton.is_accepting(state) &&
         automaton.tokens(state).empty()) {
    int only = -1;
    for (int byte = 0; byte < 256; ++byte) {
      if (automaton.step(state, static_cast<uint8_t>(byte)) == GrammarAutomaton::kDead) continue;
      if (only >= 0) return forced;
      only = byte;
    }
    if (only < 0) return forced;
    forced.push_back(static_cast<char>(only));
    state = automaton.step(state, static_cast<uint8_t>(only));
  }
  return forced;
}

bool Matcher::rollback(size_t count) {
  if (count >= states_.size() || count > kRollbackTokensMax) return false;
  if (count > 0) has_ended_ = false;
  states_.resize(states_.size() - count);
  return true;
}

size_t Matcher::state_count() const {
  return shared_->automaton.state_count();
}

}  // namespace lockstep

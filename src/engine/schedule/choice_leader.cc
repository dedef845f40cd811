#include "engine/schedule/choice_leader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace lockstep {
namespace {

// For a grammar that is not in use: larger ones are not kept for later requests.
constexpr size_t kKeptPositionsMax = 20'000;
constexpr size_t kWaitingMax = 1024;  // requests waiting for their grammars; more are refused

Error too_many(const char* what, size_t count, size_t most) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("the request has {} {}, at most {} are possible", count, what, most)};
}

Status check(const GenerateRequest& request, int vocab_size) {
  if (request.constraint.size() > kConstraintBytesMax) {
    return too_many("bytes of constraints", request.constraint.size(), kConstraintBytesMax);
  }
  if (request.logit_bias.size() > kLogitBiasMax) {
    return too_many("tokens with a bias", request.logit_bias.size(), kLogitBiasMax);
  }
  const bool has_dry = request.sampling.dry_multiplier != 0;
  if (has_dry && request.dry_breakers.size() > kDryBreakersMax) {
    return too_many("sequence breakers", request.dry_breakers.size(), kDryBreakersMax);
  }
  const bool sends_stops = request.min_tokens > 0 || !request.constraint.empty();
  if (sends_stops && request.stop_ids.size() > kStopIdsMax) {
    return too_many("end tokens", request.stop_ids.size(), kStopIdsMax);
  }
  for (const LogitBias& one : request.logit_bias) {
    if (one.token >= 0 && one.token < vocab_size && std::isfinite(one.bias)) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("logit_bias has token {} with {}: the vocabulary has {} tokens, and a "
                             "bias is a number",
                             one.token, one.bias, vocab_size)};
  }
  if (request.resumed_tokens < 0 ||
      static_cast<size_t>(request.resumed_tokens) > request.prompt.size()) {
    return Error{ErrorCode::kInvalidArgument,
                 "more of an answer was already sent than the prompt holds"};
  }
  return Ok{};
}

Error busy(size_t waiting) {
  return {
      ErrorCode::kExhausted,
      fmt::format("{} requests are already waiting for their grammars, try again later", waiting)};
}

// If a constraint exceeds a limit, that is the request's fault, not a lack of room here.
Error compile_error(const Error& error) {
  if (error.code != ErrorCode::kExhausted) return error;
  return {ErrorCode::kInvalidArgument, error.message};
}

// How the sequence begins, with what its choices use and nothing else.
ChoiceSetup setup_of(const GenerateRequest& request, bool has_grammar) {
  const auto size = static_cast<int32_t>(request.prompt.size());
  ChoiceSetup setup{.sampling = request.sampling,
                    .top_logprobs = std::max(request.top_logprobs, -1),
                    .answer_begin = size,
                    .begin = size,
                    .tokens = {},
                    .logit_bias = request.logit_bias,
                    .stop_ids = {},
                    .min_tokens = std::max(request.min_tokens, 0),
                    .dry_breakers = {}};
  if (setup.min_tokens > 0) setup.stop_ids = request.stop_ids;
  if (request.sampling.dry_multiplier != 0) setup.dry_breakers = request.dry_breakers;
  if (!has_grammar && !setup.needs_tokens()) return setup;
  setup.answer_begin = size - request.resumed_tokens;
  const size_t history = std::min(request.prompt.size(), history_needed(request.sampling));
  setup.begin = std::min(setup.answer_begin, size - static_cast<int32_t>(history));
  setup.tokens.assign(request.prompt.begin() + setup.begin, request.prompt.end());
  return setup;
}

}  // namespace

ChoiceLeader::ChoiceLeader(GrammarCache& cache, int vocab_size)
    : cache_(cache), vocab_size_(vocab_size) {}

std::optional<ChoiceLeader::ReadyRequest> ChoiceLeader::submit(uint64_t id,
                                                               GenerateRequest request) {
  if (const Status status = check(request, vocab_size_); !status.ok()) {
    return ReadyRequest{id, std::move(request), status};
  }
  if (!request.constraint.empty()) {
    if (waiting_.size() >= kWaitingMax) {
      return ReadyRequest{id, std::move(request), busy(waiting_.size())};
    }
    const int32_t grammar = waiting_.empty() || waiting_.back().grammar >= 0
                                ? find_grammar(request)
                                : -1;  // others wait for a number already
    waiting_.push_back({id, std::move(request), grammar});
    return std::nullopt;
  }
  remember(id, request, -1);
  return ReadyRequest{id, std::move(request)};
}

std::vector<ChoiceLeader::ReadyRequest> ChoiceLeader::take_ready() {
  std::vector<ReadyRequest> ready;
  std::erase_if(waiting_, [&](Waiting& one) {
    if (one.grammar < 0) one.grammar = find_grammar(one.request);
    if (one.grammar < 0 || !cache_.is_made(one.grammar)) return false;
    const auto outcome = cache_.outcome(one.grammar);
    if (outcome.ok()) {
      remember(one.id, one.request, one.grammar);
      ready.push_back({one.id, std::move(one.request)});
    } else {
      use_no_more(one.grammar);
      ready.push_back({one.id, std::move(one.request), compile_error(outcome.error())});
    }
    return true;
  });
  return ready;
}

bool ChoiceLeader::cancel(uint64_t id) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [id](const Waiting& one) { return one.id == id; });
  if (found == waiting_.end()) return false;
  if (found->grammar >= 0) use_no_more(found->grammar);
  waiting_.erase(found);
  return true;
}

// A known grammar's number, a new one, or that of the least recently used idle grammar.
int32_t ChoiceLeader::find_grammar(const GenerateRequest& request) {
  const auto take = [&](std::vector<Grammar>::iterator grammar) {
    ++grammar->uses;
    grammar->last_use = ++uses_;
    return static_cast<int32_t>(grammar - grammars_.begin());
  };
  const auto known = std::find_if(grammars_.begin(), grammars_.end(), [&](const Grammar& grammar) {
    return grammar.constraint == request.constraint && grammar.end_tokens == request.stop_ids;
  });
  if (known != grammars_.end()) return take(known);
  if (grammars_.size() < static_cast<size_t>(kGrammarsMax)) grammars_.emplace_back();
  auto free = grammars_.end();
  for (auto one = grammars_.begin(); one != grammars_.end(); ++one) {
    if (one->uses > 0) continue;
    if (free == grammars_.end() || one->last_use < free->last_use) free = one;
  }
  if (free == grammars_.end()) return -1;
  *free = {.constraint = request.constraint, .end_tokens = request.stop_ids};
  const int32_t number = take(free);
  cache_.set(number, request.constraint, request.stop_ids);
  if (std::find(untold_.begin(), untold_.end(), number) == untold_.end()) {
    untold_.push_back(number);
  }
  return number;
}

void ChoiceLeader::use_no_more(int32_t number) {
  Grammar& grammar = grammars_[static_cast<size_t>(number)];
  if (--grammar.uses > 0 || !cache_.is_made(number)) return;
  const auto outcome = cache_.outcome(number);
  if (!outcome.ok() || outcome.value() <= kKeptPositionsMax) return;
  grammar = {};
  cache_.forget(number);
  if (std::find(untold_.begin(), untold_.end(), number) == untold_.end()) {
    untold_.push_back(number);
  }
}

void ChoiceLeader::remember(uint64_t id, const GenerateRequest& request, int32_t grammar) {
  sequences_.insert_or_assign(id, Sequence{grammar, -1, setup_of(request, grammar >= 0)});
}

void ChoiceLeader::attach_slots(Step& step) {
  ChoiceOrders& orders = step.orders;
  orders.released.swap(released_);
  for (const int32_t number : untold_) {
    const Grammar& grammar = grammars_[static_cast<size_t>(number)];
    orders.grammars.push_back({number, grammar.constraint, grammar.end_tokens});
  }
  untold_.clear();
  for (ChoiceRequest& request : step.requests) {
    if (!request.wants_token) continue;
    const auto found = sequences_.find(request.sequence);
    LOCKSTEP_CHECK(found != sequences_.end());
    Sequence& sequence = found->second;
    if (sequence.slot < 0) {
      sequence.slot = free_slot();
      orders.slots.push_back({sequence.slot, sequence.grammar, std::move(sequence.setup)});
    }
    request.slot = sequence.slot;
  }
}

int32_t ChoiceLeader::free_slot() {
  auto slot = std::find(slots_.begin(), slots_.end(), false);
  if (slot == slots_.end()) slot = slots_.insert(slots_.end(), false);
  *slot = true;
  return static_cast<int32_t>(slot - slots_.begin());
}

void ChoiceLeader::forget(uint64_t id) {
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return;
  if (found->second.grammar >= 0) use_no_more(found->second.grammar);
  if (found->second.slot >= 0) {
    slots_[static_cast<size_t>(found->second.slot)] = false;
    released_.push_back(found->second.slot);
  }
  sequences_.erase(found);
}

}  // namespace lockstep

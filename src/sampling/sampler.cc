#include "sampling/sampler.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockstep {
namespace {

constexpr Candidate kLost{std::numeric_limits<float>::quiet_NaN(), kLostToken};

bool sends_row(const ChoiceRequest& request) {
  if (request.wants_logits) return true;
  return request.wants_token &&
         (request.top_logprobs >= 0 || part_kind(request.sampling) == PartKind::kRow);
}

// How many candidates of a part the choice needs.
size_t candidate_count(const ChoiceRequest& request, size_t width) {
  if (part_kind(request.sampling) == PartKind::kCandidate) return 1;
  return std::min(width, static_cast<size_t>(request.sampling.top_k));
}

size_t row_part_bytes(const ChoiceRequest& request, size_t width) {
  if (sends_row(request)) return width * sizeof(float);
  return request.wants_token ? candidate_count(request, width) * sizeof(Candidate) : 0;
}

void set_token(const Candidate& best, ChoiceState* state, Choice& choice) {
  choice.is_lost = best.token == kLostToken;
  choice.is_number = choice.is_lost || is_number(best);
  if (choice.is_lost || !choice.is_number) return;
  choice.token = best.token;
  if (best.token >= 0) return;
  choice.has_ended = state && state->rules() && state->rules()->may_end();
  choice.is_lost = !choice.has_ended;
}

}  // namespace

Sampler::Sampler(Group& group, std::vector<int> begins)
    : group_(group), begins_(std::move(begins)), parts_(static_cast<size_t>(group.size())) {}

Result<std::span<const Choice>> Sampler::choose(std::span<const float> logits,
                                                std::span<const ChoiceRequest> requests) {
  choices_.clear();
  if (requests.empty()) return std::span<const Choice>();
  part_spans_.clear();
  for (int rank = 0; rank < group_.size(); ++rank) {
    auto& part = parts_[static_cast<size_t>(rank)];
    if (group_.carries(0, rank)) part.resize(part_bytes(requests, rank));
    part_spans_.emplace_back(part);
  }
  TRY(fill_own_part(logits, requests));
  TRY(group_.gather(0, part_spans_));
  if (group_.rank() != 0) return std::span<const Choice>();
  size_t rows = 0, logprobs = 0;
  for (const ChoiceRequest& request : requests) {
    rows += sends_row(request) ? 1 : 0;
    logprobs += static_cast<size_t>(std::max(request.top_logprobs, 0) + 1);
  }
  rows_.resize(rows * static_cast<size_t>(begins_.back()));
  rows_used_ = 0;
  logprobs_.clear();
  logprobs_.reserve(logprobs);  // choices point into it
  offsets_.assign(parts_.size(), 0);
  for (const ChoiceRequest& request : requests) {
    TRY(choose_from_parts(request, choices_.emplace_back()));
  }
  return std::span<const Choice>(choices_);
}

size_t Sampler::width(int rank) const {
  const auto r = static_cast<size_t>(rank);
  return static_cast<size_t>(begins_[r + 1] - begins_[r]);
}

size_t Sampler::part_bytes(std::span<const ChoiceRequest> requests, int rank) const {
  size_t bytes = 0;
  for (const ChoiceRequest& request : requests) bytes += row_part_bytes(request, width(rank));
  return bytes;
}

Status Sampler::fill_own_part(std::span<const float> logits,
                              std::span<const ChoiceRequest> requests) {
  const auto rank = static_cast<size_t>(group_.rank());
  const size_t own = width(group_.rank());
  std::byte* to = parts_[rank].data();
  for (size_t i = 0; i < requests.size(); ++i) {
    const ChoiceRequest& request = requests[i];
    const auto part = logits.subspan(i * own, own);
    const size_t bytes = row_part_bytes(request, own);
    ChoiceState* state = TRY(follow(request));
    if (sends_row(request)) {
      if (bytes > 0) std::memcpy(to, part.data(), bytes);
    } else if (bytes > 0) {
      find_candidates(part, begins_[rank], request, state);
      candidates_.resize(bytes / sizeof(Candidate));  // the rest: no candidate
      std::memcpy(to, candidates_.data(), bytes);
    }
    to += bytes;
  }
  return Ok{};
}

Result<ChoiceState*> Sampler::follow(const ChoiceRequest& request) {
  if (request.slot < 0 || !request.wants_token) return static_cast<ChoiceState*>(nullptr);
  ChoiceState* state = slots_.find(request.slot);
  if (!state || !state->follow(request.position - 1, request.after)) {
    return Error{ErrorCode::kCorrupt, "a step does not match its sequence so far"};
  }
  return state;
}

// Chooses first and checks afterwards: usually the best tokens are allowed, and then the choice
// among the allowed ones is the same.
void Sampler::find_candidates(std::span<const float> logits, int32_t first_token,
                              const ChoiceRequest& request, ChoiceState* state) {
  const SamplingOptions& options = request.sampling;
  if (!state && part_kind(options) == PartKind::kCandidate) {
    candidates_.assign(1, choose_in_part(logits, first_token, options, request.position));
    return;
  }
  if (!are_numbers(logits)) return candidates_.assign(1, first_broken(logits, first_token));
  if (!state) return list_candidates(logits, first_token, request);
  if (state->is_lost()) return candidates_.assign(1, kLost);
  std::span<const float> scores = logits;
  if (state->changes_scores(options)) {
    scores_.assign(logits.begin(), logits.end());
    state->adjust(options, penalty_scratch_, {scores_, first_token});
    scores = scores_;
  }
  list_candidates(scores, first_token, request);
  TokenRules* rules = state->rules();
  const auto may_come = [&](const Candidate& one) {
    return one.token < 0 || rules->allows(one.token);
  };
  if (!rules || std::all_of(candidates_.begin(), candidates_.end(), may_come)) return;
  if (scores.data() != scores_.data()) scores_.assign(logits.begin(), logits.end());
  if (!forbid(first_token, *rules)) return candidates_.assign(1, kLost);
  list_candidates(scores_, first_token, request);
}

void Sampler::list_candidates(std::span<const float> scores, int32_t first_token,
                              const ChoiceRequest& request) {
  const SamplingOptions& options = request.sampling;
  if (part_kind(options) == PartKind::kCandidate) {
    candidates_.assign(1, choose_among(scores, first_token, options, request.position));
    return;
  }
  list_best(scores, first_token, options, candidate_count(request, scores.size()), candidates_);
}

// Word by word of the mask: most are all ones or all zeros.
bool Sampler::forbid(int32_t first_token, TokenRules& rules) {
  const uint64_t* allowed = rules.allowed();
  if (!allowed) return false;
  const size_t words = (static_cast<size_t>(rules.token_count()) + 63) / 64;
  for (size_t i = 0; i < scores_.size();) {
    const size_t token = static_cast<size_t>(first_token) + i;
    const size_t count = std::min(64 - token % 64, scores_.size() - i);
    const uint64_t may_come = token / 64 < words ? allowed[token / 64] >> (token % 64) : 0;
    for (size_t k = 0; k < count && ~may_come != 0; ++k) {
      if ((may_come >> k & 1) == 0) scores_[i + k] = kForbidden;
    }
    i += count;
  }
  return true;
}

Status Sampler::choose_from_parts(const ChoiceRequest& request, Choice& choice) {
  ChoiceState* state = TRY(follow(request));  // later rows of the sequence may have advanced it
  if (!sends_row(request)) {
    if (request.wants_token) set_token(best_of_parts(request), state, choice);
    return Ok{};
  }
  const auto row = row_of_parts();
  if (request.wants_logits) choice.logits = row;
  if (!request.wants_token) {
    choice.is_number = are_numbers(row);
    return Ok{};
  }
  set_token(best_of_row(row, request, state), state, choice);
  if (request.top_logprobs < 0 || choice.token < 0) return Ok{};
  const size_t begin = logprobs_.size();
  append_logprobs(row, choice.token, request.top_logprobs, logprobs_);
  choice.logprobs = std::span(logprobs_).subspan(begin);
  return Ok{};
}

Candidate Sampler::best_of_parts(const ChoiceRequest& request) {
  const bool is_list = part_kind(request.sampling) == PartKind::kList;
  candidates_.clear();
  Candidate best{};
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const size_t count = row_part_bytes(request, width(static_cast<int>(rank))) / sizeof(Candidate);
    for (size_t i = 0; i < count; ++i) {
      Candidate one;
      std::memcpy(&one, parts_[rank].data() + offsets_[rank], sizeof(one));
      offsets_[rank] += sizeof(one);
      best = better(best, one);
      if (is_list && one.token >= 0) candidates_.push_back(one);
    }
  }
  if (!is_list || best.token < 0 || !is_number(best)) return best;
  return choose_in_lists(candidates_, request.sampling, request.position);
}

std::span<const float> Sampler::row_of_parts() {
  const auto row = std::span<float>(rows_).subspan(rows_used_, static_cast<size_t>(begins_.back()));
  rows_used_ += row.size();
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const size_t bytes = width(static_cast<int>(rank)) * sizeof(float);
    if (bytes == 0) continue;
    std::memcpy(row.data() + begins_[rank], parts_[rank].data() + offsets_[rank], bytes);
    offsets_[rank] += bytes;
  }
  return row;
}

Candidate Sampler::best_of_row(std::span<const float> row, const ChoiceRequest& request,
                               ChoiceState* state) {
  const SamplingOptions& options = request.sampling;
  if (!state) return choose_in_row(row, options, request.position, candidates_);
  if (part_kind(options) != PartKind::kRow) {
    find_candidates(row, 0, request, state);
    Candidate best{};
    for (const Candidate& one : candidates_) best = better(best, one);
    if (part_kind(options) == PartKind::kCandidate || best.token < 0 || !is_number(best)) {
      return best;
    }
    return choose_in_lists(candidates_, options, request.position);
  }
  // The filters use the distribution over allowed tokens, so these must be known first.
  if (!are_numbers(row)) return first_broken(row, 0);
  if (state->is_lost()) return kLost;
  scores_.assign(row.begin(), row.end());
  state->adjust(options, penalty_scratch_, {scores_, 0});
  if (state->rules() && !forbid(0, *state->rules())) return kLost;
  return choose_in_scores(scores_, options, request.position, candidates_);
}

}  // namespace lockstep

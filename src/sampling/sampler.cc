#include "sampling/sampler.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockstep {
namespace {

constexpr Candidate kLost{std::numeric_limits<float>::quiet_NaN(), kLostToken};

// Made only when needed: it allocates.
Error broken_row() {
  return {ErrorCode::kCorrupt, "a step does not match its sequence so far"};
}

void set_token(const Candidate& best, ChoiceState& state, SampledToken& choice) {
  choice.is_lost = best.token == kLostToken;
  choice.is_number = choice.is_lost || is_number(best);
  if (choice.is_lost || !choice.is_number) return;
  choice.token = best.token;
  if (best.token >= 0) return;
  choice.has_ended = state.rules() && state.rules()->may_end();
  choice.is_lost = !choice.has_ended;
}

}  // namespace

Sampler::Sampler(Group& group, std::vector<int> begins)
    : group_(group), begins_(std::move(begins)), parts_(static_cast<size_t>(group.size())) {}

bool Sampler::Row::sends_row() const {
  if (request.wants_logits) return true;
  return state && (state->top_logprobs() >= 0 || part_kind(state->sampling()) == PartKind::kRow);
}

size_t Sampler::Row::candidate_count(size_t width) const {
  if (part_kind(state->sampling()) == PartKind::kCandidate) return 1;
  return std::min(width, static_cast<size_t>(state->sampling().top_k));
}

size_t Sampler::Row::part_bytes(size_t width) const {
  if (sends_row()) return width * sizeof(float);
  return state ? candidate_count(width) * sizeof(Candidate) : 0;
}

Status Sampler::Row::follow() const {
  if (state && !state->follow(request.position - 1, request.previous_token)) return broken_row();
  return Ok{};
}

Status Sampler::find_rows(std::span<const ChoiceRequest> requests) {
  rows_.clear();
  for (const ChoiceRequest& request : requests) {
    ChoiceState* const state = request.wants_token ? slots_.find(request.slot) : nullptr;
    if (request.wants_token && !state) return broken_row();
    rows_.push_back({request, state});
  }
  return Ok{};
}

Result<std::span<const SampledToken>> Sampler::choose(std::span<const float> logits,
                                                      std::span<const ChoiceRequest> requests) {
  choices_.clear();
  if (requests.empty()) return std::span<const SampledToken>();
  TRY(find_rows(requests));
  part_spans_.clear();
  for (int rank = 0; rank < group_.size(); ++rank) {
    auto& part = parts_[static_cast<size_t>(rank)];
    if (group_.carries(0, rank)) part.resize(part_bytes(rank));
    part_spans_.emplace_back(part);
  }
  TRY(fill_own_part(logits));
  TRY(group_.gather(0, part_spans_));
  if (group_.rank() != 0) return std::span<const SampledToken>();
  size_t whole_rows = 0, logprobs = 0;
  for (const Row& row : rows_) {
    whole_rows += row.sends_row() ? 1 : 0;
    logprobs += row.state ? static_cast<size_t>(row.state->top_logprobs() + 1) : 0;
  }
  whole_rows_.resize(whole_rows * static_cast<size_t>(begins_.back()));
  whole_used_ = 0;
  logprobs_.clear();
  logprobs_.reserve(logprobs);  // choices point into it
  offsets_.assign(parts_.size(), 0);
  for (const Row& row : rows_) TRY(choose_from_parts(row, choices_.emplace_back()));
  return std::span<const SampledToken>(choices_);
}

size_t Sampler::width(int rank) const {
  const auto r = static_cast<size_t>(rank);
  return static_cast<size_t>(begins_[r + 1] - begins_[r]);
}

size_t Sampler::part_bytes(int rank) const {
  size_t bytes = 0;
  for (const Row& row : rows_) bytes += row.part_bytes(width(rank));
  return bytes;
}

Status Sampler::fill_own_part(std::span<const float> logits) {
  const auto rank = static_cast<size_t>(group_.rank());
  const size_t own = width(group_.rank());
  std::byte* to = parts_[rank].data();
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const auto part = logits.subspan(i * own, own);
    const size_t bytes = row.part_bytes(own);
    TRY(row.follow());
    if (row.sends_row()) {
      if (bytes > 0) std::memcpy(to, part.data(), bytes);
    } else if (bytes > 0) {
      find_candidates(part, begins_[rank], row);
      candidates_.resize(bytes / sizeof(Candidate));  // the rest: no candidate
      std::memcpy(to, candidates_.data(), bytes);
    }
    to += bytes;
  }
  return Ok{};
}

// Chooses first and checks afterwards: usually the best tokens are allowed, and then the choice
// among the allowed ones is the same.
void Sampler::find_candidates(std::span<const float> logits, int32_t first_token, const Row& row) {
  ChoiceState& state = *row.state;
  const SamplingOptions& options = state.sampling();
  const bool is_plain = state.is_plain();
  if (is_plain && part_kind(options) == PartKind::kCandidate) {
    candidates_.assign(1, choose_in_part(logits, first_token, options, row.request.position));
    return;
  }
  if (!are_numbers(logits)) return candidates_.assign(1, first_broken(logits, first_token));
  if (is_plain) return list_candidates(logits, first_token, row);
  if (state.is_lost()) return candidates_.assign(1, kLost);
  std::span<const float> scores = logits;
  if (state.changes_scores()) {
    scores_.assign(logits.begin(), logits.end());
    state.adjust(penalty_scratch_, {scores_, first_token});
    scores = scores_;
  }
  list_candidates(scores, first_token, row);
  TokenRules* rules = state.rules();
  const auto may_come = [&](const Candidate& one) {
    return one.token < 0 || rules->allows(one.token);
  };
  if (!rules || std::all_of(candidates_.begin(), candidates_.end(), may_come)) return;
  if (scores.data() != scores_.data()) scores_.assign(logits.begin(), logits.end());
  if (!forbid(first_token, *rules)) return candidates_.assign(1, kLost);
  list_candidates(scores_, first_token, row);
}

void Sampler::list_candidates(std::span<const float> scores, int32_t first_token, const Row& row) {
  const SamplingOptions& options = row.state->sampling();
  if (part_kind(options) == PartKind::kCandidate) {
    candidates_.assign(1, choose_among(scores, first_token, options, row.request.position));
    return;
  }
  list_best(scores, first_token, options, row.candidate_count(scores.size()), candidates_);
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

Status Sampler::choose_from_parts(const Row& row, SampledToken& choice) {
  TRY(row.follow());  // later rows of the sequence may have advanced it
  if (!row.sends_row()) {
    if (row.state) set_token(best_of_parts(row), *row.state, choice);
    return Ok{};
  }
  const auto logits = row_of_parts();
  if (row.request.wants_logits) choice.logits = logits;
  if (!row.state) {
    choice.is_number = are_numbers(logits);
    return Ok{};
  }
  set_token(best_of_row(logits, row), *row.state, choice);
  const int32_t top_logprobs = row.state->top_logprobs();
  if (top_logprobs < 0 || choice.token < 0) return Ok{};
  const size_t begin = logprobs_.size();
  append_logprobs(logits, choice.token, top_logprobs, logprobs_);
  choice.logprobs = std::span(logprobs_).subspan(begin);
  return Ok{};
}

Candidate Sampler::best_of_parts(const Row& row) {
  const SamplingOptions& options = row.state->sampling();
  const bool is_list = part_kind(options) == PartKind::kList;
  candidates_.clear();
  Candidate best{};
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const size_t count = row.part_bytes(width(static_cast<int>(rank))) / sizeof(Candidate);
    for (size_t i = 0; i < count; ++i) {
      Candidate one;
      std::memcpy(&one, parts_[rank].data() + offsets_[rank], sizeof(one));
      offsets_[rank] += sizeof(one);
      best = better(best, one);
      if (is_list && one.token >= 0) candidates_.push_back(one);
    }
  }
  if (!is_list || best.token < 0 || !is_number(best)) return best;
  return choose_in_lists(candidates_, options, row.request.position);
}

std::span<const float> Sampler::row_of_parts() {
  const auto whole =
      std::span<float>(whole_rows_).subspan(whole_used_, static_cast<size_t>(begins_.back()));
  whole_used_ += whole.size();
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const size_t bytes = width(static_cast<int>(rank)) * sizeof(float);
    if (bytes == 0) continue;
    std::memcpy(whole.data() + begins_[rank], parts_[rank].data() + offsets_[rank], bytes);
    offsets_[rank] += bytes;
  }
  return whole;
}

Candidate Sampler::best_of_row(std::span<const float> logits, const Row& row) {
  ChoiceState& state = *row.state;
  const SamplingOptions& options = state.sampling();
  const int32_t position = row.request.position;
  if (state.is_plain()) return choose_in_row(logits, options, position, candidates_);
  if (part_kind(options) != PartKind::kRow) {
    find_candidates(logits, 0, row);
    Candidate best{};
    for (const Candidate& one : candidates_) best = better(best, one);
    if (part_kind(options) == PartKind::kCandidate || best.token < 0 || !is_number(best)) {
      return best;
    }
    return choose_in_lists(candidates_, options, position);
  }
  // The filters use the distribution over allowed tokens, so these must be known first.
  if (!are_numbers(logits)) return first_broken(logits, 0);
  if (state.is_lost()) return kLost;
  scores_.assign(logits.begin(), logits.end());
  state.adjust(penalty_scratch_, {scores_, 0});
  if (state.rules() && !forbid(0, *state.rules())) return kLost;
  return choose_in_scores(scores_, options, position, candidates_);
}

}  // namespace lockstep

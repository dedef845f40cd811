#include "sampling/sampler.h"

#include <cstring>

namespace lockstep {
namespace {

bool sends_row(const ChoiceRequest& request) {
  return request.wants_logits || (request.wants_token && needs_whole_row(request.sampling));
}

bool sends_candidate(const ChoiceRequest& request) {
  return request.wants_token && !sends_row(request);
}

void set_token(const Candidate& best, Choice& choice) {
  choice.is_number = is_number(best);
  if (choice.is_number) choice.token = best.token;
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
  fill_own_part(logits, requests);
  TRY(group_.gather(0, part_spans_));
  if (group_.rank() != 0) return std::span<const Choice>();
  size_t rows = 0;
  for (const ChoiceRequest& request : requests) rows += sends_row(request) ? 1 : 0;
  rows_.resize(rows * static_cast<size_t>(begins_.back()));
  rows_used_ = 0;
  offsets_.assign(parts_.size(), 0);
  for (const ChoiceRequest& request : requests) {
    choices_.push_back(choice_from_parts(request));
  }
  return std::span<const Choice>(choices_);
}

size_t Sampler::width(int rank) const {
  const auto r = static_cast<size_t>(rank);
  return static_cast<size_t>(begins_[r + 1] - begins_[r]);
}

size_t Sampler::part_bytes(std::span<const ChoiceRequest> requests, int rank) const {
  size_t bytes = 0;
  for (const ChoiceRequest& request : requests) {
    if (sends_row(request)) bytes += width(rank) * sizeof(float);
    if (sends_candidate(request)) bytes += sizeof(Candidate);
  }
  return bytes;
}

void Sampler::fill_own_part(std::span<const float> logits,
                            std::span<const ChoiceRequest> requests) {
  const auto rank = static_cast<size_t>(group_.rank());
  const size_t own = width(group_.rank());
  std::byte* to = parts_[rank].data();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto row = logits.subspan(i * own, own);
    if (sends_row(requests[i])) {
      if (own > 0) std::memcpy(to, row.data(), row.size_bytes());
      to += row.size_bytes();
    } else if (sends_candidate(requests[i])) {
      const Candidate best =
          choose_in_part(row, begins_[rank], requests[i].sampling, requests[i].position);
      std::memcpy(to, &best, sizeof(best));
      to += sizeof(best);
    }
  }
}

Choice Sampler::choice_from_parts(const ChoiceRequest& request) {
  Choice choice;
  if (sends_candidate(request)) {
    Candidate best{};
    for (size_t rank = 0; rank < parts_.size(); ++rank) {
      Candidate candidate;
      std::memcpy(&candidate, parts_[rank].data() + offsets_[rank], sizeof(candidate));
      offsets_[rank] += sizeof(candidate);
      best = better(best, candidate);
    }
    set_token(best, choice);
  }
  if (!sends_row(request)) return choice;
  const auto row = std::span<float>(rows_).subspan(rows_used_, static_cast<size_t>(begins_.back()));
  rows_used_ += row.size();
  for (size_t rank = 0; rank < parts_.size(); ++rank) {
    const size_t bytes = width(static_cast<int>(rank)) * sizeof(float);
    if (bytes == 0) continue;
    std::memcpy(row.data() + begins_[rank], parts_[rank].data() + offsets_[rank], bytes);
    offsets_[rank] += bytes;
  }
  if (request.wants_logits) choice.logits = row;
  if (request.wants_token) {
    set_token(choose_in_row(row, request.sampling, request.position, scratch_), choice);
  } else {
    choice.is_number = are_numbers(row);
  }
  return choice;
}

}  // namespace lockstep

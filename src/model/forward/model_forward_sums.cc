// The sums of a forward pass: how a batch is split into parts, so that the sums of one travel while
// the other is computed, and how a sum is added to the hidden state.
#include "model/forward/model.h"

namespace lockstep {

void Model::make_parts(int tokens) {
  const int first = first_half(overlap_, {.ranks = group_.size(),
                                          .tokens = tokens,
                                          .has_experts = config_.experts.count > 0,
                                          .cuts_latents = cut_.cuts_latents()});
  parts_[0] = part_of(0, first);
  parts_[1] = part_of(first, tokens - first);
  part_count_ = first < tokens ? 2 : 1;
  if (exchanging_) device_.take_back();  // after an interrupted pass
  exchanging_ = nullptr;
}

// Attention of the second half sees the first half's keys: both are computed layer by layer.
Model::Part Model::part_of(int begin, int tokens) const {
  Part part{buffers_, tokens};
  const auto skip = [&](Slice& place, int width) {
    place.offset += static_cast<size_t>(begin) * static_cast<size_t>(width);
  };
  for (Slice* word : {&part.positions, &part.list_offsets, &part.page, &part.slot, &part.factors}) {
    skip(*word, 1);
  }
  skip(part.rope, config_.rotary_dims / 2 * 2);
  skip(part.hidden, config_.hidden);
  skip(part.chosen, config_.experts.chosen);
  skip(part.chosen_weights, config_.experts.chosen);
  if (begin > 0) {  // a second half
    part.partials = buffers_.second_partials;
    part.sum = buffers_.second_sum;
  }
  return part;
}

Status Model::begin_exchange(const LeafShares& shares, Part& part) {
  TRY(device_.wait());
  if (exchanging_) TRY(finish_exchange(*exchanging_));
  const size_t count = static_cast<size_t>(part.tokens) * static_cast<size_t>(config_.hidden);
  const auto own = device_.host(part.partials).first(shares.nodes(rank_).size() * count);
  TRY(group_.begin_sum(shares, own, device_.host(part.sum).first(count), part.tokens));
  exchanging_ = &part;
  part.has_sum = true;
  if (part_count_ == 1) return Ok{};
  // finish_sum() returns any error.
  device_.lend(std::array{part.partials, part.sum},
               [this] { static_cast<void>(group_.poll_sum()); });
  return Ok{};
}

Status Model::finish_exchange(const Part& part) {
  if (exchanging_ != &part) return Ok{};
  exchanging_ = nullptr;
  const Status status = group_.finish_sum();
  if (part_count_ > 1) device_.take_back();
  return status;
}

void Model::add_sum(Part& part) {
  if (!part.has_sum) return;
  const size_t count = static_cast<size_t>(part.tokens) * static_cast<size_t>(config_.hidden);
  device_.queue(Add{.x = {part.sum, 0}, .count = count, .sum = part.hidden});
  part.has_sum = false;
}

void Model::norm_hidden(Slice weight, Part& part) {
  if (part.has_sum) {
    device_.queue(AddRmsNorm{.x = {part.sum, 0},
                             .sum = part.hidden,
                             .weight = weight,
                             .tokens = part.tokens,
                             .columns = config_.hidden,
                             .epsilon = config_.norm_epsilon,
                             .y = part.normed});
  } else {
    device_.queue(RmsNorm{.x = part.hidden,
                          .weight = weight,
                          .tokens = part.tokens,
                          .columns = config_.hidden,
                          .epsilon = config_.norm_epsilon,
                          .y = part.normed});
  }
  part.has_sum = false;
}

}  // namespace lockstep

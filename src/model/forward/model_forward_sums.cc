// The exchanges of a layer: how a batch is split into halves, so that the sums of one travel while
// the other is computed, how a sum is added to the hidden state, and how pairs are gathered.
#include "model/forward/model.h"

namespace lockstep {

void Model::make_halves(int tokens, int streams) {
  const bool exchanges = cut_.cuts_latents() || config_.layer(layers_.begin).joins_head_norms;
  const int first = first_half(overlap_, {.ranks = group_.size(),
                                          .tokens = tokens,
                                          .has_experts = config_.experts.count > 0,
                                          .exchanges_in_attention = exchanges});
  make_whole(first, streams);
  if (first == tokens) return;
  halves_[1] = half_of(first, tokens - first, streams);
  half_count_ = 2;
}

void Model::make_whole(int tokens, int streams) {
  halves_[0] = half_of(0, tokens, streams);
  half_count_ = 1;
  if (exchanging_) device_.take_back();  // after an interrupted pass
  exchanging_ = nullptr;
}

// Attention of the second half sees the first half's keys: both are computed layer by layer.
Model::BatchHalf Model::half_of(int begin, int tokens, int streams) const {
  BatchHalf half{buffers_, tokens, streams};
  const auto skip = [&](Slice& place, int width) {
    place.offset += static_cast<size_t>(begin) * static_cast<size_t>(width);
  };
  for (Slice* word :
       {&half.positions, &half.list_offsets, &half.page, &half.slot, &half.window_offsets,
        &half.window_page, &half.factors, &half.states_from, &half.states_to}) {
    skip(*word, 1);
  }
  skip(half.rope, config_.rotary_dims / 2 * 2);
  skip(half.other_rope, config_.other_rotary_dims());
  if (config_.compressed) {
    skip(half.token_ids, 1);
    skip(half.last_entry, 1);
    skip(half.rope_back, config_.rotary_dims);
    skip(half.other_rope_back, config_.rotary_dims);
  }
  skip_entries(begin, tokens, half);
  if (config_.ngrams) skip(half.ngram_embedded, config_.ngrams->columns());
  skip(half.hidden, streams * config_.hidden);
  skip(half.stream_gates, config_.streams.gates());
  skip(half.layer_inputs, config_.layer_inputs());
  if (config_.guesses_blocks()) skip(half.draft_hidden, config_.draft_inputs() * config_.hidden);
  skip(half.chosen, config_.experts.chosen);
  skip(half.chosen_weights, config_.experts.chosen);
  skip(half.mask, half.index_pages * kMaskWordsOfPage);  // later layers may use it
  if (begin > 0) {                                       // a second half
    half.partials = buffers_.second_partials;
    half.sum = buffers_.second_sum;
  }
  return half;
}

void Model::exchange(const LeafShares& shares, int vectors, BatchHalf& half, bool is_last) {
  half.has_sum = true;
  queue_turn({.kind = Turn::Kind::kSum,
              .half = &half,
              .shares = &shares,
              .vectors = vectors,
              .finishes = is_last || half_count_ == 1});
}

Status Model::exchange_sums(const Turn& turn) {
  TRY(finish_sums());
  const BatchHalf& half = *turn.half;
  const size_t count = static_cast<size_t>(turn.vectors) * static_cast<size_t>(half.tokens) *
                       static_cast<size_t>(config_.hidden);
  const auto own = device_.host(half.partials).first(turn.shares->nodes(rank_).size() * count);
  TRY(group_.begin_sum(*turn.shares, own, device_.host(half.sum).first(count), half.tokens));
  exchanging_ = &half;
  if (turn.finishes) return finish_sums();
  // finish_sum() returns any error.
  device_.lend(std::array{half.partials, half.sum},
               [this] { static_cast<void>(group_.poll_sum()); });
  return Ok{};
}

Status Model::finish_sums() {
  if (exchanging_ == nullptr) return Ok{};
  exchanging_ = nullptr;
  const Status status = group_.finish_sum();
  if (half_count_ > 1) device_.take_back();
  return status;
}

void Model::add_sum(BatchHalf& half) {
  if (!half.has_sum) return;
  half.has_sum = false;
  if (half.streams > 1) return update_streams(half);
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
  device_.queue(Add{.x = {half.sum, 0}, .count = count, .sum = half.hidden});
}

// In an exchange each subtree has the tokens of all products, one after the other. Products of one
// subtree are made there; others are copied there.
Slice Model::product_place(int layer, const BatchHalf& half, int index) const {
  const bool is_apart = config_.layer(layer).feed_forward_sums() > 1;
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
  if (is_apart && feed_forward_shares(layer).nodes(rank_).size() > 1) return half.product;
  return {half.partials, static_cast<size_t>(index) * count};
}

void Model::place_product(int layer, const BatchHalf& half, int index) {
  const Slice made = product_place(layer, half, index);
  if (made.buffer == half.partials) return;
  const auto products = static_cast<size_t>(config_.layer(layer).feed_forward_sums());
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
  for (size_t tree = 0; tree < feed_forward_shares(layer).nodes(rank_).size(); ++tree) {
    const size_t at = (tree * products + static_cast<size_t>(index)) * count;
    device_.queue(CopyColumns{.input = {made.buffer, made.offset + tree * count},
                              .count = half.tokens,
                              .columns = config_.hidden,
                              .output = {half.partials, at},
                              .output_stride = config_.hidden});
  }
}

// Leaves the sum of what the dense part and the experts give, each normed, in the first one's
// place.
void Model::join_products(int layer, const BatchHalf& half) {
  if (config_.layer(layer).feed_forward_sums() == 1) return;
  norm_sum(layer, Role::kDensePostNorm, half, 0);
  norm_sum(layer, Role::kExpertsPostNorm, half, 1);
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
  device_.queue(Add{.x = {half.sum, count}, .count = count, .sum = {half.sum, 0}});
}

void Model::norm_sum(int layer, Role norm, const BatchHalf& half, int index) {
  if (!config_.layer(layer).has(norm)) return;
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(config_.hidden);
  const Slice sum{half.sum, static_cast<size_t>(index) * count};
  queue_norm(sum, layer_weights(layer).vector(norm), half.tokens, sum);
}

void Model::queue_norm(Slice x, Slice weight, int tokens, Slice y) {
  device_.queue(RmsNorm{.x = x,
                        .weight = weight,
                        .tokens = tokens,
                        .columns = config_.hidden,
                        .epsilon = config_.norm_epsilon,
                        .y = y});
}

void Model::norm_hidden(int layer, Role norm, BatchHalf& half) {
  if (half.streams > 1) return norm_streams(layer, norm, half);
  const Slice weight = layer_weights(layer).vector(norm);
  if (half.has_sum) {
    device_.queue(AddRmsNorm{.x = {half.sum, 0},
                             .sum = half.hidden,
                             .weight = weight,
                             .tokens = half.tokens,
                             .columns = config_.hidden,
                             .epsilon = config_.norm_epsilon,
                             .y = half.normed});
  } else {
    queue_norm(half.hidden, weight, half.tokens, half.normed);
  }
  half.has_sum = false;
}

void Model::exchange_pair(PairOfRank pair, BatchHalf& half, PairPlace first, PairPlace second) {
  queue_turn({.kind = Turn::Kind::kGatherPair, .half = &half, .pair = pair});
  const auto copy = [&](size_t from, Range part, const PairPlace& place) {
    if (part.size() == 0) return;
    const Slice to{place.to.buffer, place.to.offset + static_cast<size_t>(part.begin)};
    device_.queue(CopyColumns{.input = {half.sum, from},
                              .count = half.tokens,
                              .columns = part.size(),
                              .output = to,
                              .output_stride = place.stride});
  };
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    const GatheredPair of = pair(cut_, rank, half.tokens);
    copy(of.first_at, of.first, first);
    copy(of.second_at, of.second, second);
  }
}

Status Model::gather_pair(PairOfRank pair, int tokens) {
  part_ends_.clear();
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    part_ends_.push_back(pair(cut_, rank, tokens).end);
  }
  return gather_parts(part_ends_);
}

}  // namespace lockstep

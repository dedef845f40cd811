// The part of the forward pass for tables of n-grams: which rows the tokens of a batch have, and
// how a layer adds them to the residual streams. The table is cut over ranks, in memory or on the
// disk, and its rows travel with the embeddings; every rank computes the rest. Source: NgramConfig
// in model/ngrams/ngram_config.h.
#include <algorithm>

#include "model/forward/model.h"

namespace lockstep {

bool Model::has_ngrams() const {
  return lockstep::has_ngrams(config_, layers_);
}

Status Model::open_ngram_files(std::shared_ptr<const WeightSource> source) {
  if (!has_ngrams()) return Ok{};
  const Range own = cut_.table_rows(rank_, config_.ngrams->part_rows);
  ngram_files_ = TRY(NgramFiles::open(std::move(source), *config_.ngrams,
                                      ngram_table_names(config_), {own.begin, own.size()}));
  return Ok{};
}

void Model::reserve_ngrams() {
  const NgramConfig& ngrams = *config_.ngrams;
  const size_t rows = static_cast<size_t>(limits_.tokens_max) * static_cast<size_t>(ngrams.heads);
  const auto before = static_cast<size_t>(ngrams.size - 1);
  ngrams_.rows.reserve(rows);
  ngrams_.own.reserve(rows);
  ngrams_.places.reserve(rows);
  if (ngrams.is_on_disk) ngrams_.own_values.reserve(rows * static_cast<size_t>(ngrams.row));
  ngrams_.last_tokens.assign(static_cast<size_t>(limits_.states) * before, kNoToken);
  ngrams_.start.assign(before, kNoToken);
}

// The tokens before a token are a part of the state that it continues.
void Model::list_ngrams(const Batch& batch) {
  ngrams_.clear();
  if (!has_ngrams()) return;
  const NgramConfig& ngrams = *config_.ngrams;
  const auto before = static_cast<size_t>(ngrams.size - 1);
  const auto last_tokens = [&](int32_t state) {
    return state < 0 ? ngrams_.start.data()
                     : ngrams_.last_tokens.data() + static_cast<size_t>(state) * before;
  };
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const int32_t* from = last_tokens(batch.states_from[i]);
    append_rows(ngrams, weights_.ngrams, batch.tokens[i], from, ngrams_.rows);
    int32_t* to = last_tokens(batch.states_to[i]);
    std::copy_backward(from, from + before - 1, to + before);  // may be the same place
    to[0] = batch.tokens[i];
  }
  ngrams_.places.assign(ngrams_.rows.size(), 0);
}

// Gives a rank's rows their places in the exchange buffer, which are `unit` floats each, from
// `next` on.
void Model::place_ngrams(int rank, int unit, int32_t& next) {
  if (ngrams_.rows.empty()) return;
  const NgramConfig& ngrams = *config_.ngrams;
  const Range owned = cut_.table_rows(rank, ngrams.part_rows);
  if (rank == rank_) ngrams_.begin = static_cast<size_t>(next) * static_cast<size_t>(unit);
  for (size_t i = 0; i < ngrams_.rows.size(); ++i) {
    const int32_t part = ngrams_.rows[i] / ngrams.part_rows;
    const int32_t in_part = ngrams_.rows[i] % ngrams.part_rows;
    if (in_part < owned.begin || in_part >= owned.end) continue;
    ngrams_.places[i] = next;
    next += ngrams.row / unit;
    if (rank == rank_) ngrams_.own.push_back(part * owned.size() + in_part - owned.begin);
  }
}

// The lists for the operations, and from the disk the values of this rank's rows.
void Model::write_ngrams() {
  if (ngrams_.rows.empty()) return;
  device_.write_ints(buffers_.ngram_places, ngrams_.places);
  if (!ngram_files_) return device_.write_ints(buffers_.ngram_rows, ngrams_.own);
  ngrams_.own_values.clear();
  ngram_files_->append(ngrams_.own, ngrams_.own_values);
  const std::span<const float> values = ngrams_.own_values;
  device_.write({buffers_.sum, ngrams_.begin}, std::as_bytes(values));
}

// This rank's rows, to their places.
void Model::look_up_ngrams() {
  if (ngrams_.own.empty() || ngram_files_) return;
  const NgramConfig& ngrams = *config_.ngrams;
  device_.queue(Embed{.parts = &layer_weights(ngrams.layer).ngram_rows,
                      .rows = buffers_.ngram_rows,
                      .tokens = static_cast<int>(ngrams_.own.size()),
                      .output = {buffers_.sum, ngrams_.begin}});
}

// After the exchange: the rows of a token side by side.
void Model::gather_ngrams(int tokens, int unit) {
  if (ngrams_.rows.empty()) return;
  const NgramConfig& ngrams = *config_.ngrams;
  device_.queue(CopyRows{.input = {buffers_.sum, 0},
                         .rows = buffers_.ngram_places,
                         .count = tokens * ngrams.heads,
                         .columns = ngrams.row,
                         .output = buffers_.ngram_embedded,
                         .input_stride = unit});
}

// Each stream gets the value of its token's rows, through a gate that is open as far as the stream
// and a key of these rows match; and besides a convolution over what it gets.
void Model::add_ngrams(int layer, BatchHalf& half) {
  add_sum(half);
  const LayerWeights& weights = layer_weights(layer);
  const int streams = config_.streams.count, channels = config_.stream_columns();
  device_.queue(Matmul{half.ngram_embedded,
                       half.tokens,
                       {{weights.matrix(Role::kNgramKey), half.ngram_keys},
                        {weights.matrix(Role::kNgramValue), half.ngram_value}},
                       2});
  const auto norm = [&](Role role, Slice x, Slice y) {
    norm_each_stream(weights.vector(role), half.tokens, x, y);
  };
  norm(Role::kNgramKeyNorm, half.ngram_keys, half.ngram_keys);
  norm(Role::kNgramQueryNorm, half.hidden, half.streams_normed);
  device_.queue(MatchStreams{.keys = half.ngram_keys,
                             .queries = half.streams_normed,
                             .values = half.ngram_value,
                             .tokens = half.tokens,
                             .streams = streams,
                             .columns = config_.hidden,
                             .output = half.ngram_keys});
  norm(Role::kNgramConvolutionNorm, half.ngram_keys, half.streams_normed);
  device_.queue(Convolve{.states = {.memory = recurrent_.ngrams,
                                    .stride = recurrent_.stride,
                                    .from = half.states_from,
                                    .to = half.states_to},
                         .taps = config_.ngrams->taps,
                         .tokens = half.tokens,
                         .parts = {{.x = half.streams_normed,
                                    .weights = weights.vector(Role::kNgramConvolution),
                                    .channels = channels,
                                    .y = half.streams_normed}},
                         .dilation = config_.ngrams->size});
  const size_t count = static_cast<size_t>(half.tokens) * static_cast<size_t>(channels);
  device_.queue(Add{.x = half.ngram_keys, .count = count, .sum = half.hidden});
  device_.queue(Add{.x = half.streams_normed, .count = count, .sum = half.hidden});
}

}  // namespace lockstep

// The ends of the forward pass: from tokens to the hidden state in the first stage, and from it to
// the batch's outputs in the last one, or to the next stage.
#include <numeric>

#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {

// The embedding is cut by token id: every rank looks up the tokens that it owns, and the rows are
// gathered rank by rank in the exchange buffer. `places_[i]` is the place there of token i's row.
// The same for rows of n-grams, which follow the embeddings of each rank. Without these the rows
// are listed by place, other ranks' as -1: operations that do not depend on the tokens are planned
// and recorded once by a GPU.
void Model::embed(const Batch& batch, Slice to) {
  const auto hidden = static_cast<size_t>(config_.hidden);
  // Places are so many floats; rows of n-grams are shorter than embeddings.
  const int unit =
      ngrams_.rows.empty() ? config_.embedded() : std::gcd(config_.embedded(), config_.ngrams->row);
  const int32_t places_of_row = config_.embedded() / unit;
  const bool are_by_place = ngrams_.rows.empty();
  places_.assign(batch.tokens.size(), 0);
  own_rows_.assign(are_by_place ? batch.tokens.size() : 0, -1);
  size_t own_begin = 0;
  int32_t next = 0;
  embedded_ends_.clear();
  for (int rank = 0; rank < cut_.rank_count(); ++rank) {
    const Range owned = cut_.vocabulary(rank);
    if (rank == rank_ && !are_by_place) {
      own_begin = static_cast<size_t>(next) * static_cast<size_t>(unit);
    }
    for (size_t i = 0; i < batch.tokens.size(); ++i) {
      const int32_t token = batch.tokens[i];
      if (token < owned.begin || token >= owned.end) continue;
      if (rank == rank_) {
        const int32_t row = token - owned.begin;
        if (are_by_place) {
          own_rows_[static_cast<size_t>(next)] = row;
        } else {
          own_rows_.push_back(row);
        }
      }
      places_[i] = next;
      next += places_of_row;
    }
    place_ngrams(rank, unit, next);
    embedded_ends_.push_back(static_cast<size_t>(next) * static_cast<size_t>(unit));
  }
  device_.write_ints(buffers_.rows, own_rows_);
  device_.write_ints(buffers_.places, places_);
  write_ngrams();
  device_.queue(Embed{.matrix = weights_.shared.matrix(Role::kEmbedding),
                      .rows = buffers_.rows,
                      .tokens = static_cast<int>(own_rows_.size()),
                      .output = {buffers_.sum, own_begin},
                      .output_stride = config_.embedded()});
  if (config_.layer_input > 0) {
    device_.queue(Embed{.matrix = weights_.shared.matrix(Role::kLayerEmbedding),
                        .rows = buffers_.rows,
                        .tokens = static_cast<int>(own_rows_.size()),
                        .output = {buffers_.sum, own_begin + hidden},
                        .output_stride = config_.embedded()});
  }
  look_up_ngrams();
  queue_turn({.kind = Turn::Kind::kGatherEmbeddings});
  device_.queue(CopyRows{.input = {buffers_.sum, 0},
                         .rows = buffers_.places,
                         .count = batch.token_count(),
                         .columns = config_.hidden,
                         .output = to,
                         .input_stride = unit});
  gather_ngrams(batch.token_count(), unit);
  if (config_.embedding_factor != 1) {
    device_.queue(Scale{to, buffers_.embedding_factor, batch.tokens.size() * hidden});
  }
  if (config_.layer_input > 0) make_layer_inputs(batch.token_count());
}

Status Model::gather_parts(std::span<const size_t> ends) {
  const std::span<float> all = device_.host(buffers_.sum);
  gathered_.clear();
  for (size_t begin = 0; size_t end : ends) {
    gathered_.push_back(std::as_writable_bytes(all.subspan(begin, end - begin)));
    begin = end;
  }
  return group_.all_gather(gathered_);
}

// The hidden state is left in the exchange buffer, which the host can access and which is unused
// until the next pass.
void Model::queue_outputs(const Batch& batch) {
  if (!batch.hidden_outputs.empty()) {
    norm_rows(buffers_.hidden_outputs, batch.hidden_outputs.size(), {buffers_.sum, 0});
  }
  if (!batch.outputs.empty()) {
    norm_rows(buffers_.outputs, batch.outputs.size(), buffers_.selected);
    queue_logits(batch.outputs.size());
  }
}

void Model::queue_logits(size_t count) {
  device_.queue(Matmul{buffers_.selected,
                       static_cast<int>(count),
                       {{weights_.shared.matrix(Role::kLogits), {buffers_.logits, 0}}}});
  if (config_.logit_cap == 0) return;
  const auto own = static_cast<size_t>(cut_.vocabulary(rank_).size());
  device_.queue(Cap{{buffers_.logits, 0}, count * own, config_.logit_cap});
}

ModelOutputs Model::outputs(const Batch& batch) {
  if (!has_head()) {
    const size_t count = batch.tokens.size() * static_cast<size_t>(config_.passed());
    return {.passed_on = device_.host(buffers_.sum).first(count)};
  }
  ModelOutputs outputs{.vocabulary = cut_.vocabulary(rank_)};
  outputs.logits =
      device_.host(buffers_.logits)
          .first(batch.outputs.size() * static_cast<size_t>(outputs.vocabulary.size()));
  outputs.hidden = device_.host(buffers_.sum)
                       .first(batch.hidden_outputs.size() * static_cast<size_t>(config_.hidden));
  return outputs;
}

// The hidden state, and the inputs of layers, are copied to the exchange buffer, which the host can
// access.
void Model::pass_on(int tokens) {
  const int columns = config_.stream_columns();
  copy(buffers_.hidden, tokens, columns, {buffers_.sum, 0});
  if (config_.layer_input == 0) return;
  const auto hidden = static_cast<size_t>(tokens) * static_cast<size_t>(columns);
  copy(buffers_.layer_inputs, tokens, config_.layer_inputs(), {buffers_.sum, hidden});
}

void Model::copy(Slice from, int tokens, int columns, Slice to) {
  device_.queue(CopyColumns{
      .input = from, .count = tokens, .columns = columns, .output = to, .output_stride = columns});
}

void Model::receive(std::span<const float> passed, size_t tokens) {
  LOCKSTEP_CHECK(passed.size() == tokens * static_cast<size_t>(config_.passed()));
  const size_t hidden = tokens * static_cast<size_t>(config_.stream_columns());
  device_.write(buffers_.hidden, std::as_bytes(passed.first(hidden)));
  if (config_.layer_input > 0) {
    device_.write(buffers_.layer_inputs, std::as_bytes(passed.subspan(hidden)));
  }
}

// The final norm of `count` rows of the hidden state; mixed streams have none.
void Model::norm_rows(Slice rows, size_t count, Slice output) {
  const bool has_norm = !config_.architecture->mixes_streams;
  device_.queue(CopyRows{.input = last_hidden(),
                         .rows = rows,
                         .count = static_cast<int>(count),
                         .columns = config_.hidden,
                         .output = has_norm ? buffers_.selected : output});
  if (!has_norm) return;
  queue_norm(buffers_.selected, weights_.shared.vector(Role::kFinalNorm), static_cast<int>(count),
             output);
}

}  // namespace lockstep

// The pass of the draft layer. It has a cache of its own in the pages of its sequence: the entry of
// position t is made of the model's hidden state there and of the token at t + 1, so it has one
// entry less than the model's. Entries made from the layer's own output, when it guesses more than
// one token, are made again once the model has computed these tokens.
#include <algorithm>

#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {

// All of the draft layer's state is in pages.
BatchLimits Model::draft_limits() const {
  BatchLimits limits = limits_;
  limits.states = limits.window_pages = 0;
  return limits;
}

Status Model::check_drafts(const DraftBatch& drafts) const {
  TRY(check_batch(drafts.batch, draft_limits()));
  const bool is_sound =
      drafts.hidden_rows.size() == drafts.batch.tokens.size() &&
      std::all_of(drafts.hidden_rows.begin(), drafts.hidden_rows.end(), [&](int32_t row) {
        const int32_t own = row - limits_.tokens_max;
        return own >= 0 ? own < draft_rows_ : row >= 0 && row < hidden_rows_;
      });
  if (is_sound) return Ok{};
  return Error{ErrorCode::kCorrupt,
               "a pass of the draft layer has hidden states that are not there"};
}

Result<ModelOutputs> Model::draft(const DraftBatch& drafts) {
  LOCKSTEP_CHECK(has_draft_layer() && !config_.guesses_blocks());
  TRY(check_drafts(drafts));
  const Batch& batch = drafts.batch;
  const int tokens = batch.token_count();
  list_entries(batch);
  ngrams_.clear();  // the draft layer has none
  make_halves(tokens, config_.draft_streams());
  turns_.clear();
  write_batch(batch);
  device_.write_ints(buffers_.draft_rows, drafts.hidden_rows);
  if (config_.draft_streams() > 1) {
    queue_draft_streams(batch);
  } else {
    embed(batch, buffers_.hidden);
    queue_draft_input(tokens);
  }
  queue_layer(config_.layers);
  for (BatchHalf& half : halves()) {
    finish_feed_forward(config_.layers, half);
    add_sum(half);
  }
  queue_draft_outputs(batch);
  TRY(run());
  draft_rows_ = tokens;
  return outputs(batch);
}

// The final norm of all rows, so that the draft layer can continue any of them; or their streams.
void Model::keep_hidden(int tokens) {
  hidden_rows_ = tokens;
  if (config_.guesses_blocks()) return;  // keep_tap() has
  if (config_.draft_streams() > 1) {
    copy(buffers_.hidden, tokens, config_.draft_streams() * config_.hidden, buffers_.draft_hidden);
    return;
  }
  queue_norm(last_hidden(), weights_.shared.vector(Role::kFinalNorm), tokens,
             buffers_.draft_hidden);
}

// The hidden state of a token becomes the projection of its embedding and the hidden state before
// it, side by side, each normed.
void Model::queue_draft_input(int tokens) {
  const LayerWeights& weights = layer_weights(config_.layers);
  const auto add = [&](Slice rows, Role norm, size_t column) {
    queue_norm(rows, weights.vector(norm), tokens, buffers_.normed);
    device_.queue(CopyColumns{.input = buffers_.normed,
                              .count = tokens,
                              .columns = config_.hidden,
                              .output = {buffers_.draft_input.buffer, column},
                              .output_stride = 2 * config_.hidden});
  };
  add(buffers_.hidden, Role::kDraftTokenNorm, 0);
  device_.queue(CopyRows{.input = buffers_.draft_hidden,
                         .rows = buffers_.draft_rows,
                         .count = tokens,
                         .columns = config_.hidden,
                         .output = buffers_.selected});
  add(buffers_.selected, Role::kDraftHiddenNorm, static_cast<size_t>(config_.hidden));
  device_.queue(
      Matmul{buffers_.draft_input, tokens, {{weights.matrix(Role::kDraftInput), buffers_.hidden}}});
}

// Each stream becomes the projection of the stream before it, normed, and the projection of the
// token's embedding, normed (DeepSeek V4, Qwen3.8-Flash-Next).
void Model::queue_draft_streams(const Batch& batch) {
  const LayerWeights& weights = layer_weights(config_.layers);
  const int tokens = batch.token_count(), streams = config_.draft_streams();
  const int columns = streams * config_.hidden;
  embed(batch, buffers_.normed);
  queue_norm(buffers_.normed, weights.vector(Role::kDraftTokenNorm), tokens, buffers_.normed);
  device_.queue(Matmul{
      buffers_.normed, tokens, {{weights.matrix(Role::kDraftTokenInput), buffers_.selected}}});
  device_.queue(CopyRows{.input = buffers_.draft_hidden,
                         .rows = buffers_.draft_rows,
                         .count = tokens,
                         .columns = columns,
                         .output = buffers_.streams_normed});
  norm_draft_streams(weights.vector(Role::kDraftHiddenNorm), tokens);
  device_.queue(Matmul{buffers_.streams_normed,
                       tokens * streams,
                       {{weights.matrix(Role::kDraftHiddenInput), buffers_.hidden}}});
  repeat_in_streams(buffers_.selected, tokens, buffers_.streams_normed);
  device_.queue(Add{.x = buffers_.streams_normed,
                    .count = static_cast<size_t>(tokens) * static_cast<size_t>(columns),
                    .sum = buffers_.hidden});
}

// Each stream by itself, or mixed ones all together.
void Model::norm_draft_streams(Slice weight, int tokens) {
  const int streams = config_.draft_streams();
  const bool are_together = config_.architecture->mixes_streams;
  device_.queue(RmsNorm{.x = buffers_.streams_normed,
                        .weight = weight,
                        .tokens = are_together ? tokens : tokens * streams,
                        .columns = are_together ? streams * config_.hidden : config_.hidden,
                        .epsilon = config_.norm_epsilon,
                        .y = buffers_.streams_normed});
}

// The normed rows are both what the head reads and what a further guess continues.
void Model::queue_draft_outputs(const Batch& batch) {
  const LayerWeights& weights = layer_weights(config_.layers);
  const int tokens = batch.token_count(), streams = config_.draft_streams();
  const Slice own{buffers_.draft_hidden.buffer, static_cast<size_t>(limits_.tokens_max) *
                                                    static_cast<size_t>(streams * config_.hidden)};
  if (streams > 1) {
    copy(buffers_.hidden, tokens, streams * config_.hidden, own);
    join_streams(weights, tokens);
  }
  const Slice normed = streams > 1 ? buffers_.normed : own;
  if (!config_.architecture->mixes_streams) {
    queue_norm(streams > 1 ? buffers_.normed : buffers_.hidden, weights.vector(Role::kDraftNorm),
               tokens, normed);
  }
  if (batch.outputs.empty()) return;
  device_.queue(CopyRows{.input = normed,
                         .rows = buffers_.outputs,
                         .count = static_cast<int>(batch.outputs.size()),
                         .columns = config_.hidden,
                         .output = buffers_.selected});
  queue_logits(batch.outputs.size());
}

}  // namespace lockstep

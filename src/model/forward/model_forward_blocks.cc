// The passes of draft layers that guess a block of tokens at once (DSpark of DeepSeek V4). The
// layers' keys of computed positions are made of hidden states that some of the model's layers left
// there, the taps. A block's own keys take the places of the positions that follow, until these are
// computed. Source: docs/internals/arithmetic.md, after two public ports that agree; DeepSeek's own
// code of these layers is not published.
#include <algorithm>

#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {

// The mean of the streams after a layer, side by side with those of the other taps.
void Model::keep_tap(int layer, BatchHalf& half) {
  if (!config_.guesses_blocks()) return;
  const std::vector<int>& taps = config_.draft_block->taps;
  for (size_t i = 0; i < taps.size(); ++i) {
    if (taps[i] != layer) continue;
    add_sum(half);
    collapse_streams(buffers_.streams_mean, 0, half.tokens, half);
    const size_t place = i * static_cast<size_t>(config_.hidden);
    device_.queue(
        CopyColumns{.input = half.normed,
                    .count = half.tokens,
                    .columns = config_.hidden,
                    .output = {half.draft_hidden.buffer, half.draft_hidden.offset + place},
                    .output_stride = config_.draft_inputs() * config_.hidden});
  }
}

// Each output has a block and, for follow_in_blocks(), one row more of logits.
int Model::block_outputs_max() const {
  return limits_.tokens_max / (config_.draft_block->size + 1);
}

Result<ModelOutputs> Model::draft_blocks(const DraftBatch& drafts) {
  LOCKSTEP_CHECK(config_.guesses_blocks());
  TRY(check_drafts(drafts));
  if (static_cast<int>(drafts.batch.outputs.size()) > block_outputs_max()) {
    return Error{ErrorCode::kCorrupt, "a pass of the draft layer has more blocks than fit"};
  }
  ngrams_.clear();
  begin_whole(drafts.batch);
  device_.write_ints(buffers_.draft_rows, drafts.hidden_rows);
  queue_block_keys(drafts);
  TRY(run());
  list_blocks(drafts.batch);
  if (block_batch_.tokens.empty()) return outputs(block_batch_);
  TRY(check_batch(block_batch_, draft_limits()));
  begin_whole(block_batch_);
  device_.write_ints(buffers_.block_end, block_end_);
  queue_blocks();
  TRY(run());
  return outputs(block_batch_);
}

// A pass of all tokens together: those of a block see each other.
void Model::begin_whole(const Batch& batch) {
  list_entries(batch);
  make_whole(batch.token_count(), config_.streams.count);
  turns_.clear();
  write_batch(batch);
}

// All layers' keys of a position are made of the same row.
void Model::queue_block_keys(const DraftBatch& drafts) {
  const BatchHalf& half = halves().front();
  const LayerWeights& first = layer_weights(config_.layers);
  device_.queue(CopyRows{.input = buffers_.draft_hidden,
                         .rows = buffers_.draft_rows,
                         .count = drafts.batch.token_count(),
                         .columns = config_.draft_inputs() * config_.hidden,
                         .output = buffers_.draft_input});
  device_.queue(Matmul{
      buffers_.draft_input, half.tokens, {{first.matrix(Role::kDraftInput), buffers_.selected}}});
  queue_norm(buffers_.selected, first.vector(Role::kDraftHiddenNorm), half.tokens, half.normed);
  for (int layer = config_.layers; layer < config_.end_with_draft(config_.layers); ++layer) {
    device_.queue(Matmul{
        half.normed, half.tokens, {{layer_weights(layer).matrix(Role::kSharedKey), half.key}}});
    store_shared_key(layer, half);
  }
}

// The first tokens of all blocks, then the second ones, and so on, so that guesses with one number
// lie together.
void Model::list_blocks(const Batch& batch) {
  const DraftBlock& block = *config_.draft_block;
  block_batch_.clear();
  block_end_.clear();
  block_batch_.page_lists = batch.page_lists;
  for (int i = 0; i < block.size; ++i) {
    for (const int32_t output : batch.outputs) {
      const auto row = static_cast<size_t>(output);
      block_batch_.outputs.push_back(block_batch_.token_count());
      block_batch_.tokens.push_back(i == 0 ? batch.tokens[row] : block.noise);
      block_batch_.positions.push_back(batch.positions[row] + 1 + i);
      block_batch_.list_offsets.push_back(batch.list_offsets[row]);
      block_end_.push_back(batch.positions[row] + block.size);
    }
  }
}

void Model::queue_blocks() {
  const int tokens = block_batch_.token_count();
  const int end = config_.end_with_draft(config_.layers);
  BatchHalf& half = halves().front();
  half.block = config_.draft_block->size;
  embed_streams(block_batch_);
  for (int layer = config_.layers; layer < end; ++layer) queue_layer(layer);
  finish_feed_forward(end - 1, half);
  add_sum(half);
  const LayerWeights& last = layer_weights(end - 1);
  join_streams(last, tokens);
  queue_norm(buffers_.normed, last.vector(Role::kDraftNorm), tokens, buffers_.selected);
  queue_logits(static_cast<size_t>(tokens));
}

Result<ModelOutputs> Model::follow_in_blocks(int number, std::span<const int32_t> previous) {
  const LayerWeights& last = layer_weights(config_.end_with_draft(config_.layers) - 1);
  const auto own = static_cast<size_t>(cut_.vocabulary(rank_).size());
  const auto count = previous.size() * own;
  const auto guesses = static_cast<size_t>(config_.draft_block->size);
  LOCKSTEP_CHECK(previous.size() * guesses == block_batch_.tokens.size());
  const Slice following{buffers_.logits, guesses * count};
  const Slice logits{buffers_.logits, static_cast<size_t>(number) * count};
  device_.write_ints(buffers_.rows, previous);
  device_.queue(Embed{.matrix = last.matrix(Role::kDraftPrevious),
                      .rows = buffers_.rows,
                      .tokens = static_cast<int>(previous.size()),
                      .output = buffers_.draft_previous});
  device_.queue(Matmul{buffers_.draft_previous,
                       static_cast<int>(previous.size()),
                       {{last.matrix(Role::kDraftFollowing), following}}});
  device_.queue(Add{.x = following, .count = count, .sum = logits});
  turns_.clear();
  TRY(run());
  return ModelOutputs{.vocabulary = cut_.vocabulary(rank_),
                      .logits = device_.host(buffers_.logits).subspan(logits.offset, count)};
}

}  // namespace lockstep

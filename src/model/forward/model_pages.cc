// Copies pages of state between a device and the host.
#include <algorithm>

#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {
namespace {

// The key/value heads of the layer that has the most. A layer with fewer has each of its heads in
// several blocks of a page.
int block_heads(const ModelConfig& config) {
  int most = 0;
  for (const LayerTraits& layer : config.traits) most = std::max(most, layer.state.heads);
  return most;
}

size_t piece_bytes(KvKind kind, const LayerTraits& layer) {
  return page_head_stride(kind, layer.state.key_dim);
}

}  // namespace

// The layers of this rank whose state is in pages; the last ones may use an earlier one's.
// Recurrent layers among them have none.
Range Model::page_layers() const {
  int end = config_.end_with_draft(layers_.end);
  while (end > layers_.begin && !config_.layer(end - 1).has_state()) --end;
  return {layers_.begin, end};
}

// Calls `visit` with the place of each piece in the state and its bytes, in the order of PageShape:
// for every layer and head the keys, the values, entries and the index if the layer has them, and
// the bytes of the block that are left. An index, which all heads share, is in the block of each.
template <class Visit>
void Model::visit_pieces(int32_t page, Visit visit) const {
  const PageShape shape = page_shape();
  const int heads = block_heads(config_);
  const Range layers = page_layers();
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    if (config_.layer(layer).is_recurrent()) continue;
    const LayerPages& of = state_.layers[static_cast<size_t>(layer)];
    const StateTraits& state = config_.layer(layer).state;
    const size_t begin = static_cast<size_t>(page) * of.page_stride;
    if (state.is_shared) {  // the parts of its one head lie together
      const size_t all = state.bytes(kv_, 1);
      visit(Slice{of.keys.buffer, of.keys.offset + begin}, all, shape.block_bytes - all);
      continue;
    }
    const int first = state_shape(state, cut_, rank_).heads.begin;
    const size_t bytes = piece_bytes(kv_, config_.layer(layer));
    for (int head = shape.head_begin; head < shape.head_end; ++head) {
      const auto own = static_cast<size_t>(head * state.heads / heads - first);
      const size_t at = begin + own * bytes / Slice::kElementBytes;
      visit(Slice{of.keys.buffer, of.keys.offset + at}, bytes, 0);
      const size_t index = state.index.bytes(kv_);
      const size_t rest = shape.block_bytes - 2 * bytes - index;
      visit(Slice{of.values.buffer, of.values.offset + at}, bytes, index > 0 ? 0 : rest);
      if (index == 0) continue;
      const Slice& first = state_.index_inputs[static_cast<size_t>(layer)].keys;
      visit(Slice{first.buffer, first.offset + begin}, index, rest);
    }
  }
}

PageShape Model::page_shape() const {
  StateTraits widest = config_.attention_layer().state;
  widest.heads = block_heads(config_);
  size_t most_bytes = 0;
  for (const LayerTraits& layer : config_.traits) {
    if (layer.is_recurrent()) continue;
    most_bytes = std::max(most_bytes, layer.state.bytes(kv_, 1));
  }
  const StateShape state = state_shape(widest, cut_, rank_);
  const Range layers = page_layers();
  return {.layer_begin = layers.begin - config_.recurrent_layers(0, layers.begin),
          .layer_end = layers.end - config_.recurrent_layers(0, layers.end),
          .head_begin = state.heads.begin,
          .head_end = state.heads.end,
          .block_bytes = most_bytes};
}

Status Model::read_page(int32_t page, std::span<std::byte> bytes) {
  const PageShape shape = page_shape();
  LOCKSTEP_CHECK(page >= 0 && page < limits_.pages && bytes.size() == shape.page_bytes());
  TRY(device_.wait());
  visit_pieces(page, [&](Slice from, size_t piece, size_t rest) {
    device_.read(from, bytes.first(piece));
    const auto unused = bytes.subspan(piece, rest);
    std::fill(unused.begin(), unused.end(), std::byte{0});
    bytes = bytes.subspan(piece + rest);
  });
  return Ok{};
}

void Model::write_page(int32_t page, std::span<const std::byte> bytes) {
  const PageShape shape = page_shape();
  LOCKSTEP_CHECK(page >= 0 && page < limits_.pages && bytes.size() == shape.page_bytes());
  visit_pieces(page, [&](Slice to, size_t piece, size_t rest) {
    device_.write(to, bytes.first(piece));
    bytes = bytes.subspan(piece + rest);
  });
}

}  // namespace lockstep

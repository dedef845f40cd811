// Copies pages of state, and window pages, between a device and the host.
#include <algorithm>

#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {
namespace {

size_t piece_bytes(KvKind kind, const LayerTraits& layer) {
  return page_head_stride(kind, layer.state.key_dim);
}

}  // namespace

// Calls `visit` with the place of each piece in the state and its bytes, in the order of PageShape:
// for every layer and head the keys, the values, entries and the index if the layer has them there,
// and the bytes of the block that are left. A layer with fewer heads than others has each of them
// in several blocks. An index, which all heads share, is in the block of each.
template <class Visit>
void Model::visit_pieces(StatePart part, int32_t number, Visit visit) const {
  const ModelMemory sizes = memory();
  const PageShape shape = part_shape(sizes, part);
  const int heads = block_heads(sizes, part);
  for (int layer = layers_.begin; layer < config_.end_with_draft(layers_.end); ++layer) {
    if (part_bytes(sizes, part, layer, 1) == 0) continue;
    const auto index_of_layer = static_cast<size_t>(layer);
    const StateTraits& state = config_.layer(layer).state;
    if (state.is_shared) {  // the parts of its one head lie together
      const bool begins_with_entries = part == StatePart::kPage && has_window(layer);
      const LayerPages& of =
          begins_with_entries ? state_.entries[index_of_layer] : state_.layers[index_of_layer];
      const size_t begin = of.keys.offset + static_cast<size_t>(number) * of.page_stride;
      const size_t all = part_bytes(sizes, part, layer, 1);
      visit(Slice{of.keys.buffer, begin}, all, shape.block_bytes - all);
      continue;
    }
    const LayerPages& of = state_.layers[index_of_layer];
    const size_t begin = static_cast<size_t>(number) * of.page_stride;
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
      const Slice& inputs = state_.index_inputs[index_of_layer].keys;
      visit(Slice{inputs.buffer, inputs.offset + begin}, index, rest);
    }
  }
}

PageShape Model::page_shape(StatePart part) const {
  return part_shape(memory(), part);
}

bool Model::has_page(StatePart part, int32_t number) const {
  return number >= 0 &&
         number < (part == StatePart::kWindow ? limits_.window_pages : limits_.pages);
}

Status Model::read_page(StatePart part, int32_t number, std::span<std::byte> bytes) {
  LOCKSTEP_CHECK(has_page(part, number) && bytes.size() == page_shape(part).page_bytes());
  TRY(device_.wait());
  visit_pieces(part, number, [&](Slice from, size_t piece, size_t rest) {
    device_.read(from, bytes.first(piece));
    const auto unused = bytes.subspan(piece, rest);
    std::fill(unused.begin(), unused.end(), std::byte{0});
    bytes = bytes.subspan(piece + rest);
  });
  return Ok{};
}

void Model::write_page(StatePart part, int32_t number, std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(has_page(part, number) && bytes.size() == page_shape(part).page_bytes());
  visit_pieces(part, number, [&](Slice to, size_t piece, size_t rest) {
    device_.write(to, bytes.first(piece));
    bytes = bytes.subspan(piece + rest);
  });
}

}  // namespace lockstep

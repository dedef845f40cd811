// Copies pages of state between a device and the host.
#include "base/check.h"
#include "model/forward/model.h"

namespace lockstep {
namespace {

// Calls `visit` with the place of each piece in the state, in the order of PageShape: for every
// layer and head the keys, then the values.
template <class Visit>
void visit_pieces(const PageShape& shape, std::span<const LayerPages> layers, int32_t page,
                  Visit visit) {
  const size_t elements = shape.block_bytes / 2 / Slice::kElementBytes;
  for (int layer = shape.layer_begin; layer < shape.layer_end; ++layer) {
    const LayerPages& of = layers[static_cast<size_t>(layer)];
    const size_t begin = static_cast<size_t>(page) * of.page_stride;
    for (size_t head = 0; head < static_cast<size_t>(of.kv_heads); ++head) {
      for (const Slice& kind : {of.keys, of.values}) {
        visit(Slice{kind.buffer, kind.offset + begin + head * elements});
      }
    }
  }
}

}  // namespace

PageShape Model::page_shape() const {
  const StateShape state = state_shape(config_.layer(layers_.begin).state, cut_, rank_);
  return {.layer_begin = layers_.begin,
          .layer_end = layers_.end,
          .head_begin = state.heads.begin,
          .head_end = state.heads.end,
          .block_bytes = 2 * page_head_stride(kv_, state.key_dim)};
}

Status Model::read_page(int32_t page, std::span<std::byte> bytes) {
  const PageShape shape = page_shape();
  LOCKSTEP_CHECK(page >= 0 && page < limits_.pages && bytes.size() == shape.page_bytes());
  TRY(device_.wait());
  const size_t piece = shape.block_bytes / 2;
  visit_pieces(shape, state_.layers, page, [&](Slice from) {
    device_.read(from, bytes.first(piece));
    bytes = bytes.subspan(piece);
  });
  return Ok{};
}

void Model::write_page(int32_t page, std::span<const std::byte> bytes) {
  const PageShape shape = page_shape();
  LOCKSTEP_CHECK(page >= 0 && page < limits_.pages && bytes.size() == shape.page_bytes());
  const size_t piece = shape.block_bytes / 2;
  visit_pieces(shape, state_.layers, page, [&](Slice to) {
    device_.write(to, bytes.first(piece));
    bytes = bytes.subspan(piece);
  });
}

}  // namespace lockstep

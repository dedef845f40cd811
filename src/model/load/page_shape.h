// PageShape: the part of a page of sequence state that one rank holds, in terms that do not depend
// on the model's cut: blocks of one layer and one key/value head, each with keys and then values. A
// block's content depends only on checkpoint, options and tokens, so a block computed by one rank
// serves any rank of any placement.
//
// A state of the recurrent layers has such a shape too. Its blocks are of one recurrent layer and
// one key head of the delta rule: the head's past inputs of the convolutions of queries, keys and
// values, then the states of its value heads, in floats. The state of n-grams comes first, as if it
// were layers (model/forward/buffers.h). Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lockstep {

struct PageShape {
  // Counted without the recurrent layers; for a state only these are counted.
  int layer_begin = 0;
  int layer_end = 0;
  int head_begin = 0;  // of key/value heads; latent attention has one, shared by all heads
  int head_end = 0;
  size_t block_bytes = 0;  // of one layer and head

  int layers() const { return layer_end - layer_begin; }
  int heads() const { return head_end - head_begin; }
  size_t blocks() const { return static_cast<size_t>(layers()) * static_cast<size_t>(heads()); }
  // Blocks are in the order (layers, heads).
  size_t page_bytes() const { return blocks() * block_bytes; }
  bool operator==(const PageShape&) const = default;
};

// The blocks that two parts of a page have in common, maybe none.
inline PageShape common_part(const PageShape& a, const PageShape& b) {
  PageShape common{.layer_begin = std::max(a.layer_begin, b.layer_begin),
                   .layer_end = std::min(a.layer_end, b.layer_end),
                   .head_begin = std::max(a.head_begin, b.head_begin),
                   .head_end = std::min(a.head_end, b.head_end),
                   .block_bytes = a.block_bytes};
  common.layer_end = std::max(common.layer_end, common.layer_begin);
  common.head_end = std::max(common.head_end, common.head_begin);
  return common;
}

// Memory for pages on their way to and from disk, in addition to the state itself
// (engine/store/page_store.h, and the planner's estimate): some that wait to be written, as many as
// fit, and two being read, one by the disk thread and one by the engine's.
inline constexpr size_t kStagedPagesMax = 4;
inline constexpr size_t kStagedBytesMax = size_t{256} << 20;

// The same for states of recurrent layers, which are much larger.
inline constexpr size_t kStagedStateBytesMax = size_t{128} << 20;

constexpr size_t staged_pages(size_t page_bytes, size_t bytes_max = kStagedBytesMax) {
  return std::clamp(bytes_max / std::max<size_t>(page_bytes, 1), size_t{1}, kStagedPagesMax);
}
constexpr size_t staged_states(size_t state_bytes) {
  return staged_pages(state_bytes, kStagedStateBytesMax);
}

constexpr size_t page_staging_bytes(size_t page_bytes) {
  return (staged_pages(page_bytes) + 2) * page_bytes;
}
constexpr size_t state_staging_bytes(size_t state_bytes) {
  return (staged_states(state_bytes) + 2) * state_bytes;
}

}  // namespace lockstep

// PageShape: the part of a page of sequence state that one rank holds, in words that do not depend
// on how the model is cut: blocks of one layer and one key/value head, each of keys and then
// values. What lies in a block depends on checkpoint, options and tokens alone, so that a block
// which one rank has computed serves any rank of any placement. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace lockstep {

struct PageShape {
  int layer_begin = 0;
  int layer_end = 0;
  int head_begin = 0;  // of key/value heads; latent attention has the one that all heads share
  int head_end = 0;
  size_t block_bytes = 0;  // keys and values of one layer and head

  int layers() const { return layer_end - layer_begin; }
  int heads() const { return head_end - head_begin; }
  size_t blocks() const { return static_cast<size_t>(layers()) * static_cast<size_t>(heads()); }
  // Blocks lie in the order (layers, heads).
  size_t page_bytes() const { return blocks() * block_bytes; }
  bool operator==(const PageShape&) const = default;
};

// What two parts of a page have in common; no blocks where that is nothing.
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

// Memory for pages on their way to and from a disk, beside the state itself (engine/page_store.h,
// and the planner's count): some that wait to be written, as many as fit, and one that is read, by
// the disk's thread and by the engine's.
inline constexpr size_t kStagedPagesMax = 4;
inline constexpr size_t kStagedBytesMax = size_t{256} << 20;

constexpr size_t staged_pages(size_t page_bytes) {
  return std::clamp(kStagedBytesMax / std::max<size_t>(page_bytes, 1), size_t{1}, kStagedPagesMax);
}

constexpr size_t page_staging_bytes(size_t page_bytes) {
  return (staged_pages(page_bytes) + 2) * page_bytes;
}

}  // namespace lockstep

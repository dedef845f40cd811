#include "device/packing/pack_matrix.h"

#include <algorithm>
#include <atomic>

#include "base/files/mapped_file.h"

namespace lockstep {
namespace {

// Stored bytes that are laid out before their pages are released.
constexpr size_t kChunkBytes = 2 << 20;

int tiles_of_chunk(const MatrixSource& source, int tiles) {
  const size_t tile_bytes = kLanes * std::max<size_t>(source.stored.row_bytes, 64);
  return std::clamp(static_cast<int>(kChunkBytes / tile_bytes), 1, std::max(1, tiles / 4));
}

// A matrix may be a large part of a model, and its pages would stay next to the packed copy.
void give_back_rows(const MatrixSource& source, int begin, int end) {
  const StoredMatrix& stored = source.stored;
  const bool is_by_row = stored.row_bytes > 0 && stored.row_map.empty() && !source.is_transposed;
  if (!stored.is_mapped_file || !is_by_row) return;
  const size_t from = static_cast<size_t>(source.row_begin + begin) * stored.row_bytes;
  const size_t bytes = static_cast<size_t>(end - begin) * stored.row_bytes;
  if (from + bytes <= stored.codes.size()) release_pages(stored.codes.subspan(from, bytes));
}

}  // namespace

Status pack_matrix(const MatrixSource& source, const PackPlan& plan, ThreadTeam& team,
                   std::byte* tiles) {
  const int tile_total = tile_count(plan.matrix.rows);
  std::atomic<bool> are_numbers{true};
  team.for_each_chunk(tile_total, tiles_of_chunk(source, tile_total), [&](int begin, int end) {
    // Relaxed: the end of the run orders it before the read below.
    if (!pack_tiles(source, plan, begin, end, tiles)) {
      are_numbers.store(false, std::memory_order_relaxed);
    }
    give_back_rows(source, begin * kLanes, std::min(end * kLanes, source.rows));
  });
  if (!are_numbers.load(std::memory_order_relaxed)) {
    return Error{ErrorCode::kCorrupt, "it holds a NaN value, so the checkpoint is broken"};
  }
  return Ok{};
}

}  // namespace lockstep

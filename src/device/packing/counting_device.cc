#include "device/packing/counting_device.h"

#include <algorithm>

#include "device/packing/packing.h"

namespace lockstep {
namespace {

constexpr size_t kRecentMax = 4;

bool is_same_step(const LeafStep& a, const LeafStep& b) {
  return a.columns == b.columns && a.merges == b.merges && a.ends_subtree == b.ends_subtree;
}

// Parts of the same stored matrix that are laid out alike: only their first rows may differ, by
// whole tiles.
bool is_laid_out_alike(const MatrixSource& a, const MatrixSource& b) {
  return a.stored.codes.data() == b.stored.codes.data() &&
         a.stored.codes.size() == b.stored.codes.size() && a.stored.rows == b.stored.rows &&
         a.stored.columns == b.stored.columns && a.row_begin % kLanes == b.row_begin % kLanes &&
         a.rows == b.rows && a.column_begin == b.column_begin && a.columns == b.columns &&
         a.is_transposed == b.is_transposed &&
         std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(), is_same_step);
}

}  // namespace

Result<BufferId> CountingDevice::allocate(size_t bytes, Access /*access*/) {
  allocated_bytes_ += bytes;
  return BufferId{};
}

Result<MatrixId> CountingDevice::pack(const MatrixSource& source) {
  for (const Packed& known : recent_) {
    if (!is_laid_out_alike(known.source, source)) continue;
    packed_bytes_ += known.bytes;
    return MatrixId{};
  }
  const uint64_t bytes = TRY(plan_packing(source, source.keeps_float_input)).bytes();
  packed_bytes_ += bytes;
  if (recent_.size() < kRecentMax) {
    recent_.push_back({source, bytes});
  } else {
    recent_[next_++ % kRecentMax] = {source, bytes};
  }
  return MatrixId{};
}

}  // namespace lockstep

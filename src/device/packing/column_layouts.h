// ColumnLayouts: how the columns of packed matrices are cut. A model has thousands of matrices and
// few layouts, so equal ones are kept once. Used by devices; one thread.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "device/packing/packing.h"

namespace lockstep {

struct ColumnLayout {
  std::vector<uint16_t> piece_blocks;
  std::vector<BlockColumns> blocks;
  std::vector<LeafStep> steps;
  size_t subtrees = 0;  // that the steps complete
  int number = 0;       // from 0

  bool fits(const PackPlan& plan) const;
};

class ColumnLayouts {
 public:
  // The layout of the plan, which stays where it is.
  const ColumnLayout* keep(PackPlan&& plan);

 private:
  std::deque<ColumnLayout> layouts_;
};

}  // namespace lockstep

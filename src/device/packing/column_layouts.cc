#include "device/packing/column_layouts.h"

#include <algorithm>

namespace lockstep {

bool ColumnLayout::fits(const PackPlan& plan) const {
  const auto same_step = [](const LeafStep& a, const LeafStep& b) {
    return a.columns == b.columns && a.merges == b.merges && a.ends_subtree == b.ends_subtree &&
           a.pieces == b.pieces;
  };
  const auto same_block = [](const BlockColumns& a, const BlockColumns& b) {
    return a.begin == b.begin && a.count == b.count;
  };
  return piece_blocks == plan.piece_blocks &&
         std::equal(steps.begin(), steps.end(), plan.steps.begin(), plan.steps.end(), same_step) &&
         std::equal(blocks.begin(), blocks.end(), plan.blocks.begin(), plan.blocks.end(),
                    same_block);
}

const ColumnLayout* ColumnLayouts::keep(PackPlan&& plan) {
  for (const ColumnLayout& known : layouts_) {
    if (known.fits(plan)) return &known;
  }
  const auto subtrees = std::count_if(plan.steps.begin(), plan.steps.end(),
                                      [](const LeafStep& step) { return step.ends_subtree != 0; });
  layouts_.push_back({std::move(plan.piece_blocks), std::move(plan.blocks), std::move(plan.steps),
                      static_cast<size_t>(subtrees), static_cast<int>(layouts_.size())});
  return &layouts_.back();
}

}  // namespace lockstep

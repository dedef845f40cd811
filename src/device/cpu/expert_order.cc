#include "device/cpu/expert_order.h"

namespace lockstep {

void ExpertOrder::sort(std::span<const int32_t> chosen, int experts) {
  ends_.assign(static_cast<size_t>(experts), 0);
  for (const int32_t expert : chosen) ++ends_[static_cast<size_t>(expert)];
  runs_.clear();
  size_t begin = 0;
  for (int expert = 0; expert < experts; ++expert) {
    size_t& end = ends_[static_cast<size_t>(expert)];
    const size_t count = end;
    end = begin;  // place of the expert's next slot
    if (count > 0) runs_.push_back({expert, begin, begin + count});
    begin += count;
  }
  slots_.resize(chosen.size());
  for (size_t slot = 0; slot < chosen.size(); ++slot) {
    slots_[ends_[static_cast<size_t>(chosen[slot])]++] = static_cast<int32_t>(slot);
  }
}

}  // namespace lockstep

// ExpertOrder: groups (token, choice) slots by expert, so that an expert's weights are read once
// for all of its tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

class ExpertOrder {
 public:
  // Slots [begin, end) of slots() belong to one expert.
  struct Run {
    int expert;
    size_t begin;
    size_t end;
    size_t size() const { return end - begin; }
  };

  // `chosen`: the expert of each slot. Allocates only for more slots than ever before.
  void sort(std::span<const int32_t> chosen, int experts);

  std::span<const int32_t> slots() const { return slots_; }  // by expert, then by slot
  std::span<const Run> runs() const { return runs_; }        // experts ascending

 private:
  std::vector<int32_t> slots_;
  std::vector<size_t> ends_;  // scratch, by expert
  std::vector<Run> runs_;
};

}  // namespace lockstep

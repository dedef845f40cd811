// ChoiceOrders: rank 0's orders about single sequences for the ranks that sample, sent with the
// step that needs them: grammars to make, and how sequences begin (sampling/choice_state.h). Part
// of a Step; most steps have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/dfa/limits.h"
#include "model/forward/batch.h"
#include "sampling/choice_state.h"

namespace lockstep {

inline constexpr size_t kLogitBiasMax = 1024;  // tokens with a bias, per request
inline constexpr size_t kDryBreakersMax = 256;
inline constexpr size_t kStopIdsMax = 256;
inline constexpr int32_t kGrammarsMax = 32;  // known to the ranks at the same time

// Makes a grammar of this number, or forgets it.
struct GrammarOrder {
  int32_t grammar = 0;
  std::string constraint;           // grammar/constraint.h; empty: forget it
  std::vector<int32_t> end_tokens;  // allowed where the text may end
};

// The slot's sequence begins.
struct SlotOrder {
  int32_t slot = 0;
  int32_t grammar = -1;  // -1: anything
  ChoiceSetup setup;
};

// Applied in this order: released slots, grammars, slots.
struct ChoiceOrders {
  std::vector<int32_t> released;
  std::vector<GrammarOrder> grammars;
  std::vector<SlotOrder> slots;

  bool empty() const { return released.empty() && grammars.empty() && slots.empty(); }
  void clear();
};

// A step carries each grammar at most once, and one slot for each of its tokens.
size_t orders_bytes_max(const BatchLimits& limits);
// Appends nothing if there are no orders; else whole words of four bytes.
void append_orders(const ChoiceOrders& orders, std::vector<std::byte>& bytes);
// kCorrupt if they break a limit.
Status decode_orders(std::span<const std::byte> bytes, const BatchLimits& limits,
                     ChoiceOrders& orders);

}  // namespace lockstep

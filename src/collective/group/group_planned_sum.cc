// Group::all_reduce by a plan: assigns memory to every slot and runs the exchange. The rank's own
// sums are read in place and the root is written straight to `sum`; intermediate sums use scratch.
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "collective/group/group.h"
#include "collective/plan/wire_codec.h"

namespace lockstep {
namespace {

constexpr size_t kAlignedFloats = 64;  // for chunks and pieces, so that blocks of a wire stay whole
static_assert(kAlignedFloats % kWireBlock == 0);

bool overlaps(std::span<const float> a, std::span<const float> b) {
  return a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

size_t chunk_floats_of(size_t count, size_t chunks) {
  const size_t aligned = (count + chunks * kAlignedFloats - 1) / (chunks * kAlignedFloats);
  return aligned * kAlignedFloats;
}

std::byte* bytes_of(const float* values) {
  // Given slots are only read (Exchange).
  return reinterpret_cast<std::byte*>(const_cast<float*>(values));
}

}  // namespace

void Group::begin_by_plan(const Reduction& reduction) {
  const GroupPlans::Sum& plan = *reduction.plan;
  const std::span<const float> own = reduction.own;
  const std::span<float> sum = reduction.sum;
  const Wire wire = reduction.wire;
  const auto& slots = plan.exchange.slots;
  const auto chunks = static_cast<size_t>(plan.chunk_count);
  const size_t chunk_floats = chunk_floats_of(sum.size(), chunks);
  const size_t node_count = own.size() / sum.size();
  // Rounding needs memory of its own, and so do sums that lie where the root will.
  const bool is_copied = wire != Wire::kF32 || overlaps(own, sum);
  const auto needs_place = [&](const ExchangePlan::Slot& slot) {
    return slot.is_given ? is_copied : !slot.is_root;
  };
  const auto places = std::count_if(slots.begin(), slots.end(), needs_place);
  scratch_.resize(std::max(scratch_.size(), static_cast<size_t>(places) * chunk_floats));
  memory_.resize(std::max(memory_.size(), slots.size()));
  lengths_.resize(std::max(lengths_.size(), chunks));
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    const size_t begin = std::min(chunk * chunk_floats, sum.size());
    lengths_[chunk] = std::min(chunk_floats, sum.size() - begin);
  }
  float* place = scratch_.data();
  for (size_t i = 0; i < slots.size(); ++i) {
    const auto chunk = static_cast<size_t>(slots[i].part);
    const size_t begin = std::min(chunk * chunk_floats, sum.size());
    const float* values =
        slots[i].is_given ? own.data() + i % node_count * sum.size() + begin : sum.data() + begin;
    memory_[i] = bytes_of(needs_place(slots[i]) ? place : values);
    if (slots[i].is_given && is_copied) {
      std::copy_n(values, lengths_[chunk], place);
      round_to_wire(wire, {place, lengths_[chunk]});
    }
    if (needs_place(slots[i])) place += chunk_floats;
  }
  const size_t piece_floats = options_.piece_bytes / sizeof(float) /
                              static_cast<size_t>(plan.message_slots_max) / kAlignedFloats *
                              kAlignedFloats;
  LOCKSTEP_CHECK(piece_floats > 0);
  exchange_.begin(plan.exchange, {.memory = std::span(memory_).first(slots.size()),
                                  .lengths = std::span(lengths_).first(chunks),
                                  .piece_elements = piece_floats,
                                  .window_pieces = window_pieces(),
                                  .is_sum = true,
                                  .wire = wire});
}

Status Group::finish_by_plan(const Reduction& reduction) {
  const std::span<float> sum = reduction.sum;
  const auto& slots = reduction.plan->exchange.slots;
  const size_t chunk_floats =
      chunk_floats_of(sum.size(), static_cast<size_t>(reduction.plan->chunk_count));
  TRY(exchange_.finish(options_));
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!slots[i].is_root || !slots[i].is_given) continue;
    const auto chunk = static_cast<size_t>(slots[i].part);
    std::memmove(sum.data() + std::min(chunk * chunk_floats, sum.size()), memory_[i],
                 lengths_[chunk] * sizeof(float));
  }
  return Ok{};
}

}  // namespace lockstep

// How the files of Planner append dispatches.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "device/gpu/plan.h"

namespace lockstep::gpu {

inline size_t groups_of(size_t count, size_t size) {
  return (count + size - 1) / size;
}

// Calls body(begin, count) for rows of elements: their length keeps the number of workgroups in x
// and y below what devices allow.
template <class Body>
void in_rows(size_t count, Body body) {
  constexpr size_t kRow = 1 << 16;
  for (size_t begin = 0; begin < count; begin += kRow) body(begin, std::min(kRow, count - begin));
}

template <class Params>
void Planner::emit(const KernelVariant& variant, size_t x, size_t y, const Params& params,
                   std::initializer_list<MemoryRange> reads,
                   std::initializer_list<MemoryRange> writes) {
  static_assert(std::is_trivially_copyable_v<Params> && sizeof(Params) <= kParamBytesMax);
  forget_prepared(writes);
  Dispatch& dispatch = dispatches_.emplace_back();
  dispatch.variant = variant;
  dispatch.groups = {static_cast<uint32_t>(x), static_cast<uint32_t>(y)};
  dispatch.waits = hazards_.add(reads, writes);
  for (const MemoryRange& range : reads) dispatch.bytes += range.is_partial ? 0 : range.bytes;
  for (const MemoryRange& range : writes) dispatch.bytes += range.is_partial ? 0 : range.bytes;
  dispatch.param_bytes = sizeof(Params);
  std::memcpy(dispatch.params.data(), &params, sizeof(Params));
}

}  // namespace lockstep::gpu

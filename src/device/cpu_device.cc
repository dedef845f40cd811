#include "device/cpu_device.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/packing.h"

namespace lockstep {

CpuDevice::CpuDevice(const DeviceOptions& options)
    : kernels_(*options.kernels),
      team_({.threads = options.threads,
             .first_core = options.first_core,
             .progress = options.progress}) {}

Result<BufferId> CpuDevice::allocate(size_t bytes, Access access) {
  DeviceMemory memory = TRY(DeviceMemory::allocate(bytes));
  buffers_.push_back({std::move(memory), bytes, access});
  return static_cast<BufferId>(buffers_.size() - 1);
}

Result<MatrixId> CpuDevice::pack(const MatrixSource& source) {
  std::byte* packed = TRY(take_slab_bytes(packed_bytes(source)));
  const int tiles = tile_count(source.rows);
  team_.for_each_chunk(tiles, 4,
                       [&](int begin, int end) { pack_tiles(source, begin, end, packed); });
  const auto subtrees = std::count_if(source.steps.begin(), source.steps.end(),
                                      [](const LeafStep& step) { return step.ends_subtree != 0; });
  matrices_.push_back({source.dtype, source.rows, source.columns, packed, source.steps,
                       static_cast<size_t>(subtrees)});
  return static_cast<MatrixId>(matrices_.size() - 1);
}

Result<std::byte*> CpuDevice::take_slab_bytes(size_t bytes) {
  constexpr size_t kSlabBytes = size_t{64} << 20;
  constexpr size_t kAlignment = 64;  // a cache line
  const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (slabs_.empty() || slab_used_ + rounded > slabs_.back().bytes()) {
    slabs_.push_back(TRY(DeviceMemory::allocate(std::max(rounded, kSlabBytes))));
    slab_used_ = 0;
  }
  std::byte* taken = slabs_.back().data() + slab_used_;
  slab_used_ += rounded;
  return taken;
}

void CpuDevice::write(Slice target, std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(bytes.size() % 4 == 0);
  std::byte* to = place(target, bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

void CpuDevice::queue(const Operation& operation) {
  std::visit([this](const auto& op) { run(op); }, operation);
}

Status CpuDevice::wait() {
  ++wait_count_;
  return Ok{};
}

std::span<float> CpuDevice::host(BufferId buffer) {
  const Buffer& found = buffers_[static_cast<size_t>(buffer)];
  LOCKSTEP_CHECK(found.access == Access::kHost);
  return {reinterpret_cast<float*>(found.memory.data()), found.bytes / 4};
}

std::byte* CpuDevice::place(Slice slice, size_t elements) const {
  const Buffer& buffer = buffers_[static_cast<size_t>(slice.buffer)];
  LOCKSTEP_CHECK((slice.offset + elements) * 4 <= buffer.bytes);
  return buffer.memory.data() + slice.offset * 4;
}

float* CpuDevice::floats(Slice slice, size_t elements) const {
  return reinterpret_cast<float*>(place(slice, elements));
}

const int32_t* CpuDevice::ints(Slice slice, size_t elements) const {
  return reinterpret_cast<const int32_t*>(place(slice, elements));
}

PageArgs CpuDevice::page_args(const LayerPages& pages) const {
  return {.keys = floats(pages.keys, 0),
          .values = floats(pages.values, 0),
          .page_stride = pages.page_stride,
          .head_dim = pages.head_dim,
          .value_dim = pages.value_dim,
          .kv_heads = pages.kv_heads};
}

}  // namespace lockstep

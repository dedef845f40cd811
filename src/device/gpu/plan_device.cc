#include "device/gpu/plan_device.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/kernels.h"

namespace lockstep::gpu {
namespace {

constexpr size_t kRangeAlignment = 256;
constexpr size_t kScratchBytes = size_t{1} << 32;  // no memory is taken

// Keys and values that a token reads.
uint64_t state_bytes(const Attention& op, int position) {
  int positions = position + 1;
  if (op.window > 0) positions = std::min(positions, op.window);
  if (op.chosen > 0) positions = std::min(positions, op.chosen);
  // The rows of chosen positions hold keys and values, if keys have no rows of their own.
  const size_t parts = op.chosen > 0 && !op.keys_are_rows ? 1 : 2;
  const auto of_page = parts * page_head_stride(op.pages.kind, op.pages.head_dim) *
                       static_cast<size_t>(op.pages.kv_heads);
  return of_page * static_cast<size_t>(positions) / kPagePositions;
}

// The states that it reads and writes.
uint64_t state_bytes(const DeltaRule& op) {
  const auto elements = static_cast<uint64_t>(op.value_heads) * static_cast<uint64_t>(op.key_dim) *
                        static_cast<uint64_t>(op.value_dim);
  return 2 * elements * Slice::kElementBytes * static_cast<uint64_t>(op.tokens);
}
uint64_t state_bytes(const Convolve& op) {
  uint64_t channels = 0;
  for (const Convolve::Part& part : op.parts) channels += static_cast<uint64_t>(part.channels);
  return 2 * channels * static_cast<uint64_t>((op.taps - 1) * op.dilation) * Slice::kElementBytes *
         static_cast<uint64_t>(op.tokens);
}
uint64_t state_bytes(const IndexScores& op, int position) {
  return page_head_stride(op.pages.kind, op.pages.head_dim) * static_cast<size_t>(position + 1) /
         kPagePositions;
}
uint64_t row_bytes(const LayerPages& pages, int rows) {
  return page_head_stride(pages.kind, pages.head_dim) * static_cast<size_t>(rows) / kPagePositions;
}
uint64_t state_bytes(const Compress& op) {
  return row_bytes(op.inputs, op.entries * op.pool * (op.overlaps ? 2 : 1));
}
uint64_t state_bytes(const CompressedAttention& op, int position) {
  int entries = op.pool > 0 ? (position + 1) / op.pool : 0;
  if (op.chosen > 0) entries = std::min(entries, op.chosen);
  return row_bytes(op.rows, std::min(op.window, position + 1)) + row_bytes(op.entries, entries);
}

}  // namespace

Address PlanDevice::take(size_t bytes) {
  const Address begin = next_;
  next_ += (bytes + kRangeAlignment - 1) / kRangeAlignment * kRangeAlignment;
  return begin;
}

Result<BufferId> PlanDevice::allocate(size_t bytes, Access access) {
  buffers_.push_back({take(bytes), bytes, {}});
  if (access == Access::kHost) buffers_.back().memory.resize(bytes / sizeof(float));
  return static_cast<BufferId>(buffers_.size() - 1);
}

Result<MatrixId> PlanDevice::pack(const MatrixSource& source) {
  PackPlan plan = TRY(plan_packing(source, source.keeps_float_input));
  const PackedMatrix packed = plan.matrix;
  const size_t bytes = plan.bytes();
  const ColumnLayout& layout = *layouts_.keep(std::move(plan));
  matrices_.push_back(plan_matrix(packed, layout, take(sizeof(MatrixInfo)), bytes));
  return static_cast<MatrixId>(matrices_.size() - 1);
}

void PlanDevice::queue(const Operation& operation) {
  queued_.push_back(operation);
}

Status PlanDevice::run(const Turns& turn) {
  for (const Operation& operation : queued_) {
    if (const auto* host = std::get_if<HostTurn>(&operation)) {
      plan();
      TRY(turn(host->number));
      continue;
    }
    if (const auto* attention = std::get_if<Attention>(&operation)) {
      counts_.bytes += state_bytes(*attention, position_);
    }
    if (const auto* rule = std::get_if<DeltaRule>(&operation)) {
      counts_.bytes += state_bytes(*rule);
    }
    if (const auto* convolve = std::get_if<Convolve>(&operation)) {
      counts_.bytes += state_bytes(*convolve);
    }
    if (const auto* scores = std::get_if<IndexScores>(&operation)) {
      counts_.bytes += state_bytes(*scores, position_);
    }
    if (const auto* compress = std::get_if<Compress>(&operation)) {
      counts_.bytes += state_bytes(*compress);
    }
    if (const auto* compressed = std::get_if<CompressedAttention>(&operation)) {
      counts_.bytes += state_bytes(*compressed, position_);
    }
    planner_.add(operation);
  }
  queued_.clear();
  plan();
  return Ok{};
}

void PlanDevice::plan() {
  ++wait_count_;
  for (const Dispatch& dispatch : planner_.finish()) {
    ++counts_.dispatches;
    counts_.barriers += dispatch.waits ? 1 : 0;
    counts_.bytes += dispatch.bytes;
    counts_.kernels.push_back(dispatch.variant.kernel);
  }
  planner_.clear();
}

std::span<float> PlanDevice::host(BufferId buffer) {
  return buffers_[static_cast<size_t>(buffer)].memory;
}

DispatchCounts PlanDevice::take_counts() {
  return std::exchange(counts_, {});
}

MemoryRange PlanDevice::place(Slice slice, size_t elements) const {
  const Buffer& buffer = buffers_[static_cast<size_t>(slice.buffer)];
  const size_t begin = slice.offset * Slice::kElementBytes;
  const size_t bytes = elements * Slice::kElementBytes;
  LOCKSTEP_CHECK(begin + bytes <= buffer.bytes);
  return {buffer.begin + begin, bytes};
}

size_t PlanDevice::bytes_of(BufferId buffer) const {
  return buffers_[static_cast<size_t>(buffer)].bytes;
}

const PlanMatrix& PlanDevice::matrix(MatrixId id) const {
  return matrices_[static_cast<size_t>(id)];
}

Address PlanDevice::table(const std::vector<MatrixId>& matrices) {
  return matrix(matrices.front()).info;
}

MemoryRange PlanDevice::scratch() const {
  return {Address{1} << 60, kScratchBytes};
}

}  // namespace lockstep::gpu

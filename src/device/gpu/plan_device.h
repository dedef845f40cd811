// PlanDevice: plans what a GPU would do, and does nothing. For `lockstep bench --explain-device`
// and tests: it counts dispatches, barriers and bytes. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "device/gpu/plan.h"
#include "device/null_device.h"
#include "device/packing/column_layouts.h"

namespace lockstep::gpu {

struct DispatchCounts {
  uint64_t dispatches = 0;
  uint64_t barriers = 0;
  uint64_t bytes = 0;  // read and written: weights, activations, keys and values
  std::vector<Kernel> kernels;
};

class PlanDevice final : public NullDevice, private PlanMemory {
 public:
  // Attention is counted for a token at `position`.
  explicit PlanDevice(int position) : position_(position), planner_(*this, {}) {}

  Result<BufferId> allocate(size_t bytes, Access access) override;
  Result<MatrixId> pack(const MatrixSource& source) override;
  void queue(const Operation& operation) override;
  Status run(const Turns& turn) override;
  std::span<float> host(BufferId buffer) override;
  uint64_t wait_count() const override { return wait_count_; }

  // Counts what has been planned since the last call.
  DispatchCounts take_counts();

 private:
  struct Buffer {
    Address begin = 0;
    size_t bytes = 0;
    std::vector<float> memory;  // if the host may see it
  };

  Address take(size_t bytes);
  // Counts the operations that the planner has been given.
  void plan();

  MemoryRange place(Slice slice, size_t elements) const override;
  size_t bytes_of(BufferId buffer) const override;
  const PlanMatrix& matrix(MatrixId id) const override;
  Address table(const std::vector<MatrixId>& matrices) override;
  MemoryRange scratch() const override;

  int position_;
  Address next_ = 1 << 20;
  std::deque<Buffer> buffers_;
  ColumnLayouts layouts_;
  std::vector<PlanMatrix> matrices_;
  std::vector<Operation> queued_;
  Planner planner_;
  DispatchCounts counts_;
  uint64_t wait_count_ = 0;
};

}  // namespace lockstep::gpu

// CountingDevice: counts the bytes that a loader allocates and lays out as the processor's kernels
// read them, without holding or reading any. For the planner, which runs the loader over it. One
// thread.
#pragma once

#include <cstdint>
#include <vector>

#include "device/null_device.h"

namespace lockstep {

class CountingDevice final : public NullDevice {
 public:
  Result<BufferId> allocate(size_t bytes, Access access) override;
  // Errors are those of plan_packing().
  Result<MatrixId> pack(const MatrixSource& source) override;

  uint64_t allocated_bytes() const { return allocated_bytes_; }
  uint64_t packed_bytes() const { return packed_bytes_; }

 private:
  struct Packed {
    MatrixSource source;
    uint64_t bytes;
  };

  uint64_t allocated_bytes_ = 0;
  uint64_t packed_bytes_ = 0;
  std::vector<Packed> recent_;  // the heads of a layer are many matrices of few shapes
  size_t next_ = 0;
};

}  // namespace lockstep

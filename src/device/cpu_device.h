// CpuDevice: runs each operation when it is queued, on a team of threads, with the kernels of one
// instruction set.
#pragma once

#include "base/thread_team.h"
#include "device/device.h"
#include "device/memory.h"

namespace lockstep {

class CpuDevice : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options);

  Result<BufferId> allocate(size_t bytes, Access access) override;
  Result<MatrixId> pack(const MatrixSource& source) override;
  void write(Slice target, std::span<const std::byte> bytes) override;
  void queue(const Operation& operation) override;
  Status wait() override;
  std::span<float> host(BufferId buffer) override;
  uint64_t wait_count() const override { return wait_count_; }

 protected:
  struct Buffer {
    DeviceMemory memory;
    size_t bytes;
    Access access;
  };
  std::span<const Buffer> buffers() const { return buffers_; }

 private:
  struct Matrix {
    DType dtype;
    int rows;
    int columns;
    const std::byte* packed;  // in a slab
    std::vector<LeafStep> steps;
    size_t subtrees;  // that the steps end
  };

  // Room for packed weights, cut from large pieces: a model may have more matrices than a process
  // may have mappings.
  Result<std::byte*> take_slab_bytes(size_t bytes);
  // The matrix's product with rows of its own choice; the caller sets tiles, input and output.
  MatmulArgs matmul_args(const Matrix& m) const;
  void multiply(DType dtype, const MatmulArgs& args) const;

  // Where a slice of `elements` four-byte elements lies; checked to be inside its buffer.
  std::byte* place(Slice slice, size_t elements) const;
  float* floats(Slice slice, size_t elements) const;
  const int32_t* ints(Slice slice, size_t elements) const;
  const Matrix& matrix(MatrixId id) const { return matrices_[static_cast<size_t>(id)]; }
  PageArgs page_args(const LayerPages& pages) const;
  // body(begin, end) over rows of work, each of about `cost` multiply-adds.
  template <class Body>
  void parallel(int count, size_t cost, Body&& body);

  void run(const Embed& op);
  void run(const Matmul& op);
  void run(const CopyRows& op);
  void run(const RmsNorm& op);
  void run(const RopeTable& op);
  void run(const Rope& op);
  void run(const RotatePairs& op);
  void run(const HeadMatmul& op);
  void run(const StoreKv& op);
  void run(const Attention& op);
  void run(const AddBias& op);
  void run(const ScaleRows& op);
  void run(const Route& op);
  void run(const ExpertsUp& op);
  void run(const ExpertsDown& op);
  void run(const SiluMul& op);
  void run(const Add& op);

  const KernelTable& kernels_;
  ThreadTeam team_;
  std::vector<Buffer> buffers_;
  std::vector<Matrix> matrices_;
  std::vector<DeviceMemory> slabs_;
  size_t slab_used_ = 0;  // of the last one
  uint64_t wait_count_ = 0;
};

}  // namespace lockstep

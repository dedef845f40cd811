// VulkanDevice: runs operations on a GPU through Vulkan (gpu.h), with the bits of the processor. It
// collects what is queued; run() plays it, with commands that are recorded when a queue is new and
// kept for the next equal one (docs/internals/gpu.md). docs/internals/device.md has the contract.
#pragma once

#include <array>
#include <deque>
#include <unordered_map>
#include <variant>

#include "base/threads/thread_team.h"
#include "device/device.h"
#include "device/gpu/plan.h"
#include "device/packing/column_layouts.h"
#include "device/vulkan/gpu.h"

namespace lockstep::gpu {

class VulkanDevice final : public Device, private PlanMemory {
 public:
  // `wish` is for tests; without one the kind of GPU decides. A software GPU gets small numbers of
  // pages to a dispatch, if that does not say (kTurnsMax).
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options,
                                              const Gpu::Options& which,
                                              std::optional<PlanOptions> wish = std::nullopt);

  ~VulkanDevice() override;

  // A matrix that is packed already, for the self-test; `blocks` if it is quantised.
  Result<MatrixId> keep_packed(const PackedMatrix& packed, std::span<const BlockColumns> blocks);

  Result<BufferId> allocate(size_t bytes, Access access) override;
  Result<MatrixId> pack(const MatrixSource& source) override;
  void write(Slice target, std::span<const std::byte> bytes) override;
  void read(Slice source, std::span<std::byte> bytes) override;
  void queue(const Operation& operation) override;
  Status run(const Turns& turn) override;
  std::span<float> host(BufferId buffer) override;
  void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) override;
  void take_back() override;
  uint64_t wait_count() const override { return wait_count_; }
  std::string description() const override;
  // How many queues have been recorded; others were played again.
  uint64_t recorded_count() const { return recorded_count_; }

 private:
  // Some bytes of the GPU's memory.
  struct Piece {
    const GpuMemory* memory = nullptr;
    size_t offset = 0;
    size_t bytes = 0;

    Address address() const { return memory->address + offset; }
    std::byte* mapped() const { return memory->mapped ? memory->mapped + offset : nullptr; }
  };
  struct Buffer {
    Piece piece;
    Access access;
  };
  // A pool of large allocations, from which pieces are cut.
  struct Slabs {
    MemoryKind kind;
    size_t slab_bytes;
    const GpuMemory* last = nullptr;
    size_t used = 0;  // of the last one
  };
  struct Table {
    std::vector<MatrixId> matrices;
    Address address = 0;
  };
  struct LayoutOnDevice {
    Address steps = 0;
    Address blocks = 0;
  };

  // The commands of a queue of operations.
  struct Recording {
    std::vector<Operation> operations;
    std::vector<MatrixId> matrices;  // in the lists that operations point to
    std::vector<Gpu::Part> parts;
    std::vector<std::optional<int>> turns;  // of the host after each part
    std::vector<VkCommandBuffer> commands;  // at least one for each part
    Piece params;
    uint64_t used = 0;  // when, in runs; 0: it holds nothing
  };
  static constexpr size_t kRecordingsMax = 8;

  VulkanDevice(const DeviceOptions& options, std::unique_ptr<Gpu> gpu, const PlanOptions& plan);
  static Result<std::unique_ptr<VulkanDevice>> make(const DeviceOptions& options,
                                                    std::unique_ptr<Gpu> gpu, PlanOptions plan);
  // Refuses a GPU on which a kernel is wrong.
  static Result<std::unique_ptr<Gpu>> tested(const DeviceOptions& options, std::unique_ptr<Gpu> gpu,
                                             const PlanOptions& plan);

  Result<Piece> take(Slabs& slabs, size_t bytes);
  template <class Element>
  Result<Address> keep(std::span<const Element> elements);
  Result<LayoutOnDevice> place_layout(const ColumnLayout& layout);
  Result<MatrixId> add_matrix(const PlanMatrix& placed, int inputs_per_token);
  Result<PlanMatrix> place_matrix(const PackedMatrix& packed, const ColumnLayout& layout,
                                  const Piece& tiles);
  Status make_scratch();
  // Moves bytes between the host and the device, which has nothing to do.
  Status copy_in(const Piece& to, std::span<const std::byte> bytes);
  Status copy_out(const Piece& from, std::span<std::byte> bytes);
  Piece piece_of(Slice slice, size_t bytes) const;
  Status play(const Turns& turn);
  // The kept or new recording of what is queued.
  Result<Recording*> recording();
  Status record(Recording& recording);
  Status prepare(std::span<const Dispatch> dispatches, Recording& recording);
  // Dispatches, and then a turn of the host.
  Status add_parts(std::span<const Dispatch> dispatches, Address params, std::optional<int> turn,
                   Recording& recording);
  Status finish_part();

  MemoryRange place(Slice slice, size_t elements) const override;
  size_t bytes_of(BufferId buffer) const override;
  const PlanMatrix& matrix(MatrixId id) const override;
  Address table(const std::vector<MatrixId>& matrices) override;
  MemoryRange scratch() const override;

  std::unique_ptr<Gpu> gpu_;
  ThreadTeam team_;  // lays out weights
  Progress* progress_;
  bool keeps_float_input_;
  Slabs device_slabs_;
  Slabs host_slabs_;
  std::vector<Buffer> buffers_;
  ColumnLayouts layouts_;
  std::vector<LayoutOnDevice> placed_layouts_;
  std::vector<PlanMatrix> matrices_;
  std::unordered_map<MatrixId, Table> tables_;  // by their first matrix
  size_t scratch_bytes_ = 0;                    // wanted
  Piece scratch_;
  Piece staging_;  // of copies
  Planner planner_;
  std::vector<Operation> queued_;
  std::vector<MatrixId> queued_matrices_;  // in the lists that they point to
  std::array<Recording, kRecordingsMax> recordings_;
  uint64_t runs_ = 0;
  uint64_t recorded_count_ = 0;
  Status status_ = Ok{};  // the first error since the last run
  std::function<void()> meanwhile_;
  uint64_t wait_count_ = 0;
};

}  // namespace lockstep::gpu

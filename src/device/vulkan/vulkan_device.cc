#include "device/vulkan/vulkan_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/packing/pack_matrix.h"
#include "device/vulkan/kernel_trial.h"
#include "device/vulkan/spare_gpus.h"

namespace lockstep::gpu {
namespace {

constexpr size_t kAlignment = 256;  // of pieces
constexpr size_t kDeviceSlabBytes = size_t{64} << 20;
constexpr size_t kHostSlabBytes = size_t{1} << 20;
constexpr size_t kStagingBytes = size_t{4} << 20;

// lavapipe, Mesa's GPU in software, ends the loops of an invocation without a word after this many
// turns, all loops counted together. Attention has at most about 300 for a page, a product about 11
// for a block and 40 for a run; other kernels are far below.
constexpr size_t kTurnsMax = 65'535;
constexpr uint32_t kPagesOfSoftware = 128;
// Room for the parts of attention between two dispatches: a token with 32 heads of 128 columns
// reaches some 250,000 positions.
constexpr size_t kPartsBytes = size_t{64} << 20;

size_t turns_of(const PlanMatrix& m) {
  constexpr size_t kOfBlock = 11, kOfRun = 40;
  if (m.input != kPlainInput) return kOfBlock * static_cast<size_t>(m.blocks);
  return kOfRun * (static_cast<size_t>(m.columns) / kColumnsOfRun + kLeafStepsMax);
}

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Result<std::unique_ptr<VulkanDevice>> VulkanDevice::make(const DeviceOptions& options,
                                                         std::unique_ptr<Gpu> gpu,
                                                         PlanOptions plan) {
  if (gpu->info().is_software && plan.attention_pages_max == 0) {
    plan.attention_pages_max = kPagesOfSoftware;
  }
  plan.ends_blocks &= gpu->info().invocations >= kInvocationsOfEnds &&
                      gpu->info().shared_bytes >= kSharedBytesOfEnds;
  std::unique_ptr<VulkanDevice> device(new VulkanDevice(options, std::move(gpu), plan));
  device->staging_ = TRY(device->take(device->host_slabs_, kStagingBytes));
  return device;
}

Result<std::unique_ptr<Gpu>> VulkanDevice::tested(const DeviceOptions& options,
                                                  std::unique_ptr<Gpu> gpu,
                                                  const PlanOptions& plan) {
  const DeviceOptions alone{.kernels = options.kernels, .progress = options.progress};
  const std::unique_ptr<VulkanDevice> device = TRY(make(alone, std::move(gpu), plan));
  if (const auto wrong = TRY(find_wrong_kernel(*device))) {
    return other_bits(device->gpu_->info(), "in " + *wrong);
  }
  device->gpu_->free_memory();
  device->gpu_->set_tried(plan.specialises);
  return std::move(device->gpu_);
}

Result<std::unique_ptr<Device>> VulkanDevice::open(const DeviceOptions& options,
                                                   const Gpu::Options& which,
                                                   std::optional<PlanOptions> wish) {
  std::unique_ptr<Gpu> gpu = TRY(take_gpu(which));
  // A software GPU compiles slowly, so it gets few kernels.
  const PlanOptions plan = wish.value_or(PlanOptions{.specialises = !gpu->info().is_software});
  if (which.tries_kernels && !gpu->is_tried(plan.specialises)) {
    gpu = TRY(tested(options, std::move(gpu), plan));
  }
  return std::unique_ptr<Device>(TRY(make(options, std::move(gpu), plan)));
}

VulkanDevice::VulkanDevice(const DeviceOptions& options, std::unique_ptr<Gpu> gpu,
                           const PlanOptions& plan)
    : gpu_(std::move(gpu)),
      team_({.threads = options.threads,
             .first_core = options.first_core,
             .progress = options.progress}),
      progress_(options.progress),
      keeps_float_input_(options.keeps_float_input),
      device_slabs_{.kind = MemoryKind::kDevice, .slab_bytes = kDeviceSlabBytes},
      host_slabs_{.kind = MemoryKind::kHost, .slab_bytes = kHostSlabBytes},
      scratch_bytes_(2 * kPartsBytes),
      planner_(*this, plan) {}

VulkanDevice::~VulkanDevice() {
  if (gpu_) give_back(std::move(gpu_));
}

Result<VulkanDevice::Piece> VulkanDevice::take(Slabs& slabs, size_t bytes) {
  const size_t rounded = aligned(bytes);
  if (slabs.last == nullptr || slabs.used + rounded > slabs.last->bytes) {
    slabs.last = TRY(gpu_->allocate(std::max(rounded, slabs.slab_bytes), slabs.kind));
    slabs.used = 0;
  }
  const Piece piece{slabs.last, slabs.used, bytes};
  slabs.used += rounded;
  return piece;
}

Result<BufferId> VulkanDevice::allocate(size_t bytes, Access access) {
  Slabs& slabs = access == Access::kHost ? host_slabs_ : device_slabs_;
  buffers_.push_back({TRY(take(slabs, bytes)), access});
  return static_cast<BufferId>(buffers_.size() - 1);
}

template <class Element>
Result<Address> VulkanDevice::keep(std::span<const Element> elements) {
  const Piece piece = TRY(take(device_slabs_, elements.size_bytes()));
  TRY(copy_in(piece, std::as_bytes(elements)));
  return piece.address();
}

Result<VulkanDevice::LayoutOnDevice> VulkanDevice::place_layout(const ColumnLayout& layout) {
  std::vector<BlockInfo> blocks;
  std::vector<uint32_t> piece_ends;  // in blocks
  for (const uint16_t count : layout.piece_blocks) {
    const auto begin = static_cast<uint32_t>(blocks.size());
    for (int i = 0; i < count; ++i) {
      const BlockColumns& columns = layout.blocks[blocks.size()];
      blocks.push_back({.column_begin = static_cast<uint32_t>(columns.begin),
                        .columns = static_cast<uint32_t>(columns.count),
                        .piece = static_cast<uint32_t>(piece_ends.size()),
                        .piece_begin = begin});
    }
    piece_ends.push_back(static_cast<uint32_t>(blocks.size()));
  }
  std::vector<StepInfo> steps;
  uint32_t column = 0, block = 0;
  size_t piece = 0;
  for (const LeafStep& step : layout.steps) {
    piece += static_cast<size_t>(step.pieces);
    const uint32_t block_end = piece > 0 ? piece_ends[piece - 1] : 0;
    steps.push_back({.block_begin = block,
                     .block_count = block_end - block,
                     .column_begin = column,
                     .columns = static_cast<uint32_t>(step.columns),
                     .merges = static_cast<uint32_t>(step.merges),
                     .ends_subtree = static_cast<uint32_t>(step.ends_subtree)});
    block = block_end;
    column += static_cast<uint32_t>(step.columns);
  }
  LayoutOnDevice placed;
  placed.steps = TRY(keep(std::span<const StepInfo>(steps)));
  placed.blocks = TRY(keep(std::span<const BlockInfo>(blocks)));
  return placed;
}

Result<PlanMatrix> VulkanDevice::place_matrix(const PackedMatrix& packed,
                                              const ColumnLayout& layout, const Piece& tiles) {
  const auto number = static_cast<size_t>(layout.number);
  if (number == placed_layouts_.size()) placed_layouts_.push_back(TRY(place_layout(layout)));
  const Piece place = TRY(take(device_slabs_, sizeof(MatrixInfo)));
  const PlanMatrix matrix = plan_matrix(packed, layout, place.address(), tiles.bytes);
  MatrixInfo info{.tiles = tiles.address(),
                  .steps = placed_layouts_[number].steps,
                  .blocks = placed_layouts_[number].blocks,
                  .codes = static_cast<uint32_t>(packed.codes),
                  .scales = static_cast<uint32_t>(packed.scales),
                  .input_form = matrix.input,
                  .rows = static_cast<uint32_t>(packed.rows),
                  .columns = static_cast<uint32_t>(packed.columns),
                  .tile_words = static_cast<uint32_t>(packed.tile_bytes / 4),
                  .scales_at = static_cast<uint32_t>(packed.scales_at / 4),
                  .step_count = static_cast<uint32_t>(layout.steps.size()),
                  .block_count = static_cast<uint32_t>(layout.blocks.size()),
                  .code_offset = packed.code_offset,
                  .factor = packed.factor,
                  .table = {}};
  if (packed.table != nullptr) std::memcpy(info.table, packed.table, sizeof info.table);
  TRY(copy_in(place, std::as_bytes(std::span(&info, 1))));
  return matrix;
}

Result<MatrixId> VulkanDevice::pack(const MatrixSource& source) {
  PackPlan plan = TRY(plan_packing(source, keeps_float_input_ || source.keeps_float_input));
  LOCKSTEP_CHECK(plan.steps.size() <= kLeafStepsMax);
  const Piece tiles = TRY(take(device_slabs_, plan.bytes()));
  if (tiles.mapped() != nullptr) {
    TRY(pack_matrix(source, plan, team_, tiles.mapped()));
  } else {
    std::vector<std::byte> packed(plan.bytes());
    TRY(pack_matrix(source, plan, team_, packed.data()));
    TRY(copy_in(tiles, packed));
  }
  const PackedMatrix packed = plan.matrix;
  const ColumnLayout& layout = *layouts_.keep(std::move(plan));
  const PlanMatrix placed = TRY(place_matrix(packed, layout, tiles));
  if (source.input_like && !matrix(*source.input_like).shares_input_with(placed)) {
    return differs_in_input();
  }
  return add_matrix(placed, source.inputs_per_token);
}

Result<MatrixId> VulkanDevice::add_matrix(const PlanMatrix& placed, int inputs_per_token) {
  const auto inputs = static_cast<size_t>(std::max(1, inputs_per_token + 1));
  if (gpu_->info().is_software && inputs * turns_of(placed) > kTurnsMax) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("{} ends loops early, so it cannot multiply a matrix with {} columns; "
                             "use the CPU",
                             gpu_->info().name, placed.columns)};
  }
  // An operation that multiplies with it, and as much for rows that were prepared before.
  scratch_bytes_ =
      std::max(scratch_bytes_, 2 * 4 * placed.prepared_words() * kTokensOfRound * inputs);
  matrices_.push_back(placed);
  return static_cast<MatrixId>(matrices_.size() - 1);
}

Result<MatrixId> VulkanDevice::keep_packed(const PackedMatrix& packed,
                                           std::span<const BlockColumns> blocks) {
  PackPlan plan{.matrix = packed, .piece_blocks = {}, .blocks = {}, .steps = {}};
  plan.steps.assign(packed.steps, packed.steps + packed.step_count);
  plan.blocks.assign(blocks.begin(), blocks.end());
  for (int i = 0, pieces = 0; i < packed.step_count; ++i) {
    for (int piece = 0; piece < packed.steps[i].pieces; ++piece) {
      plan.piece_blocks.push_back(packed.piece_blocks[pieces++]);
    }
  }
  const size_t bytes = plan.bytes();
  const Piece tiles = TRY(take(device_slabs_, bytes));
  TRY(copy_in(tiles, {packed.tiles, bytes}));
  const ColumnLayout& layout = *layouts_.keep(std::move(plan));
  return add_matrix(TRY(place_matrix(packed, layout, tiles)), 1);
}

Status VulkanDevice::make_scratch() {
  if (scratch_bytes_ <= scratch_.bytes) return Ok{};
  scratch_ = TRY(take(device_slabs_, scratch_bytes_));
  for (Recording& recording : recordings_) recording.used = 0;  // they have the old one's address
  return Ok{};
}

VulkanDevice::Piece VulkanDevice::piece_of(Slice slice, size_t bytes) const {
  const Piece& buffer = buffers_[static_cast<size_t>(slice.buffer)].piece;
  const size_t begin = slice.offset * Slice::kElementBytes;
  LOCKSTEP_CHECK(begin + bytes <= buffer.bytes);
  return {buffer.memory, buffer.offset + begin, bytes};
}

Status VulkanDevice::copy_in(const Piece& to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return Ok{};
  if (to.mapped() != nullptr) {
    std::memcpy(to.mapped(), bytes.data(), bytes.size());
    return Ok{};
  }
  for (size_t begin = 0; begin < bytes.size(); begin += staging_.bytes) {
    const size_t some = std::min(staging_.bytes, bytes.size() - begin);
    std::memcpy(staging_.mapped(), bytes.data() + begin, some);
    TRY(gpu_->submit_copy(*staging_.memory, staging_.offset, *to.memory, to.offset + begin, some));
    TRY(gpu_->finish());
  }
  return Ok{};
}

Status VulkanDevice::copy_out(const Piece& from, std::span<std::byte> bytes) {
  if (bytes.empty()) return Ok{};
  if (from.mapped() != nullptr) {
    std::memcpy(bytes.data(), from.mapped(), bytes.size());
    return Ok{};
  }
  for (size_t begin = 0; begin < bytes.size(); begin += staging_.bytes) {
    const size_t some = std::min(staging_.bytes, bytes.size() - begin);
    TRY(gpu_->submit_copy(*from.memory, from.offset + begin, *staging_.memory, staging_.offset,
                          some));
    TRY(gpu_->finish());
    std::memcpy(bytes.data() + begin, staging_.mapped(), some);
  }
  return Ok{};
}

void VulkanDevice::write(Slice target, std::span<const std::byte> bytes) {
  LOCKSTEP_CHECK(bytes.size() % 4 == 0);
  const Piece to = piece_of(target, bytes.size());
  if (status_.ok() && !queued_.empty()) status_ = wait();  // operations before it
  if (status_.ok() && !bytes.empty()) status_ = copy_in(to, bytes);
}

void VulkanDevice::read(Slice source, std::span<std::byte> bytes) {
  LOCKSTEP_CHECK(bytes.size() % 4 == 0);
  const Status status = copy_out(piece_of(source, bytes.size()), bytes);
  if (status_.ok() && !status.ok()) status_ = status;
}

std::string VulkanDevice::description() const {
  return fmt::format("vulkan: {} ({})", gpu_->info().name, gpu_->info().driver_name);
}

std::span<float> VulkanDevice::host(BufferId buffer) {
  const Buffer& found = buffers_[static_cast<size_t>(buffer)];
  LOCKSTEP_CHECK(found.access == Access::kHost);
  return {reinterpret_cast<float*>(found.piece.mapped()), found.piece.bytes / 4};
}

void VulkanDevice::lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) {
  LOCKSTEP_CHECK(buffers.size() <= kLentMax && meanwhile != nullptr);
  meanwhile_ = std::move(meanwhile);
}

void VulkanDevice::take_back() {
  meanwhile_ = nullptr;
}

MemoryRange VulkanDevice::place(Slice slice, size_t elements) const {
  const size_t bytes = elements * Slice::kElementBytes;
  return {piece_of(slice, bytes).address(), bytes};
}

size_t VulkanDevice::bytes_of(BufferId buffer) const {
  return buffers_[static_cast<size_t>(buffer)].piece.bytes;
}

const PlanMatrix& VulkanDevice::matrix(MatrixId id) const {
  return matrices_[static_cast<size_t>(id)];
}

// Made when a layer's matrices are first used.
Address VulkanDevice::table(const std::vector<MatrixId>& matrices) {
  Table& table = tables_[matrices.front()];
  if (table.matrices == matrices) return table.address;
  std::vector<Address> addresses;
  addresses.reserve(matrices.size());
  for (const MatrixId id : matrices) addresses.push_back(matrix(id).info);
  const Result<Address> kept = keep(std::span<const Address>(addresses));
  if (!kept.ok()) {
    if (status_.ok()) status_ = kept.error();
    return 0;
  }
  table = {matrices, kept.value()};
  return table.address;
}

MemoryRange VulkanDevice::scratch() const {
  return {scratch_.address(), scratch_.bytes};
}

}  // namespace lockstep::gpu

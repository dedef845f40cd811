#include "device/cpu/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "device/packing/pack_matrix.h"

namespace lockstep {

namespace {

// A long prompt is multiplied in rounds of this many tokens, which bounds scratch memory.
constexpr size_t kTokensOfRound = 256;
// One token's needs for its heads or its experts fit.
static_assert(kTokensOfRound >= kHeadMatricesMax && kTokensOfRound > kMatmulPartsMax);
}  // namespace

CpuDevice::CpuDevice(const DeviceOptions& options)
    : kernels_(*options.kernels),
      team_({.threads = options.threads,
             .first_core = options.first_core,
             .progress = options.progress}),
      keeps_float_input_(options.keeps_float_input) {
  queued_.reserve(kOperationsUsual);
}

std::string CpuDevice::description() const {
  return fmt::format("cpu ({}, {} thread{})", kernels_.name, team_.size(),
                     team_.size() == 1 ? "" : "s");
}

Result<BufferId> CpuDevice::allocate(size_t bytes, Access access) {
  return add_buffer(TRY(DeviceMemory::allocate(bytes)), bytes, access);
}

BufferId CpuDevice::add_buffer(DeviceMemory memory, size_t bytes, Access access) {
  buffers_.push_back({std::move(memory), bytes, access});
  return static_cast<BufferId>(buffers_.size() - 1);
}

Result<MatrixId> CpuDevice::pack(const MatrixSource& source) {
  PackPlan plan = TRY(plan_packing(source, keeps_float_input_ || source.keeps_float_input));
  if (source.input_like && !matrix(*source.input_like).shares_input_with(plan)) {
    return differs_in_input();
  }
  LOCKSTEP_CHECK(plan.steps.size() <= kLeafStepsMax);
  std::byte* tiles = TRY(take_slab_bytes(plan.bytes()));
  TRY(pack_matrix(source, plan, team_, tiles));
  Matrix m{plan.matrix, layouts_.keep(std::move(plan))};
  m.packed.tiles = tiles;
  m.packed.piece_blocks = m.layout->piece_blocks.data();
  m.packed.steps = m.layout->steps.data();
  m.packed.step_count = static_cast<int32_t>(m.layout->steps.size());
  TRY(reserve_scratch(m, source.inputs_per_token));
  matrices_.push_back(m);
  return static_cast<MatrixId>(matrices_.size() - 1);
}

bool CpuDevice::Matrix::takes_form_of(const PackedMatrix& other) const {
  return is_by_column(packed.codes) == is_by_column(other.codes) &&
         packed.has_integer_input == other.has_integer_input;
}

bool CpuDevice::Matrix::shares_input_with(const PackPlan& plan) const {
  return takes_form_of(plan.matrix) && layout->fits(plan);
}

// ColumnLayouts keeps equal layouts once.
bool CpuDevice::Matrix::shares_input_with(const Matrix& other) const {
  return takes_form_of(other.packed) && layout == other.layout;
}

size_t CpuDevice::Matrix::input_bytes() const {
  if (is_by_column(packed.codes)) return columns() * sizeof(float);
  const size_t block = packed.has_integer_input ? sizeof(InputBlock8) : sizeof(InputBlockF);
  return static_cast<size_t>(packed.block_count) * block;
}

// Experts read copies of a token's input, which are next to it.
Status CpuDevice::reserve_scratch(const Matrix& m, int inputs_per_token) {
  const auto copies = static_cast<size_t>(inputs_per_token > 1 ? inputs_per_token : 0);
  const size_t bytes = kTokensOfRound * m.input_bytes() * (1 + copies);
  if (scratch_ && bytes <= scratch_->bytes()) return Ok{};
  scratch_.reset();
  scratch_.emplace(TRY(DeviceMemory::allocate(bytes)));
  return Ok{};
}

int CpuDevice::tokens_in_scratch(size_t bytes) const {
  const size_t tokens = scratch_ ? scratch_->bytes() / std::max<size_t>(bytes, 1) : 0;
  LOCKSTEP_CHECK(tokens > 0);
  return static_cast<int>(std::min(tokens, kTokensOfRound));
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
  const size_t before = run_to_turn(0);
  LOCKSTEP_CHECK(before == queued_.size());  // no turn of the host is among them
  queued_.clear();
  std::byte* to = place(target, bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

void CpuDevice::read(Slice source, std::span<std::byte> bytes) {
  LOCKSTEP_CHECK(bytes.size() % 4 == 0);
  const std::byte* from = place(source, bytes.size() / 4);
  if (!bytes.empty()) std::memcpy(bytes.data(), from, bytes.size());
}

void CpuDevice::queue(const Operation& operation) {
  queued_.push_back(operation);
}

size_t CpuDevice::run_to_turn(size_t begin) {
  for (size_t i = begin; i < queued_.size(); ++i) {
    if (std::holds_alternative<HostTurn>(queued_[i])) return i;
    std::visit([this](const auto& op) { run(op); }, queued_[i]);
    has_run(queued_[i]);
    if (is_lent()) take_turn();
  }
  return queued_.size();
}

Status CpuDevice::run(const Turns& turn) {
  Status status = Ok{};
  for (size_t i = 0; status.ok(); ++i) {
    i = run_to_turn(i);
    ++wait_count_;
    if (i == queued_.size()) break;
    LOCKSTEP_CHECK(turn != nullptr);
    status = turn(std::get<HostTurn>(queued_[i]).number);
  }
  queued_.clear();
  return status;
}

std::span<float> CpuDevice::host(BufferId buffer) {
  const Buffer& found = buffers_[static_cast<size_t>(buffer)];
  LOCKSTEP_CHECK(found.access == Access::kHost);
  return {reinterpret_cast<float*>(found.memory.data()), found.bytes / 4};
}

void CpuDevice::lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) {
  LOCKSTEP_CHECK(buffers.size() <= kLentMax && meanwhile != nullptr);
  meanwhile_ = std::move(meanwhile);
  last_turn_ = {};
}

void CpuDevice::take_turn() {
  const Clock::time_point now = Clock::now();
  if (now - last_turn_ < kHostTurn) return;
  yield_to_host();
  last_turn_ = now;
}

void CpuDevice::take_back() {
  meanwhile_ = nullptr;
}

std::byte* CpuDevice::place(Slice slice, size_t elements) const {
  const Buffer& buffer = buffers_[static_cast<size_t>(slice.buffer)];
  LOCKSTEP_CHECK((slice.offset + elements) * Slice::kElementBytes <= buffer.bytes);
  return buffer.memory.data() + slice.offset * Slice::kElementBytes;
}

float* CpuDevice::floats(Slice slice, size_t elements) const {
  return reinterpret_cast<float*>(place(slice, elements));
}

const int32_t* CpuDevice::ints(Slice slice, size_t elements) const {
  return reinterpret_cast<const int32_t*>(place(slice, elements));
}

uint32_t* CpuDevice::words(Slice slice, size_t elements) const {
  return reinterpret_cast<uint32_t*>(place(slice, elements));
}

PageArgs CpuDevice::page_args(const LayerPages& pages) const {
  return {.kind = pages.kind,
          .keys = place(pages.keys, 0),
          .values = place(pages.values, 0),
          .page_stride = pages.page_stride * Slice::kElementBytes,
          .head_dim = pages.head_dim,
          .value_dim = pages.value_dim,
          .kv_heads = pages.kv_heads};
}

}  // namespace lockstep

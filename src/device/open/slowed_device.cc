#include "device/open/slowed_device.h"

#include <algorithm>
#include <string>
#include <thread>

#include "tensor/stored_check.h"

namespace lockstep {
namespace {

// A sleeper wakes late, and later still if the cores are busy; a longer delay is not made up for.
constexpr std::chrono::milliseconds kMadeUpMax{2};
// How often the host has a turn while buffers are lent.
constexpr std::chrono::microseconds kLentTurn{100};

}  // namespace

// A rectangle counts by its share of all elements.
Result<MatrixId> SlowedDevice::pack(const MatrixSource& source) {
  const MatrixId id = TRY(CpuDevice::pack(source));
  const double elements = static_cast<double>(source.stored.rows) * source.stored.columns;
  const double own = static_cast<double>(source.rows) * source.columns;
  const auto bytes = static_cast<double>(stored_bytes(source.stored));
  stored_bytes_.push_back(elements > 0 ? bytes * own / elements : 0);
  return id;
}

void SlowedDevice::has_run(const Operation& operation) {
  const double bytes = std::visit([this](const auto& op) { return read_by(op); }, operation);
  work_us_ += machine_.kernel_us + bytes / (machine_.read_gb_s * 1e3);
}

void SlowedDevice::sleep_until_done() {
  if (work_us_ > 0) {
    const std::chrono::duration<double, std::micro> work(work_us_);
    const Clock::time_point due =
        begun_ + std::chrono::duration_cast<Clock::duration>(work) - late_;
    sleep_until(due);
    late_ = std::clamp<Clock::duration>(Clock::now() - due, Clock::duration::zero(), kMadeUpMax);
  }
  work_us_ = 0;
  begun_ = Clock::now();
}

Status SlowedDevice::run(const Turns& turn) {
  begun_ = Clock::now();
  work_us_ = 0;
  TRY(CpuDevice::run([&](int number) {
    sleep_until_done();
    Status status = turn(number);
    begun_ = Clock::now();
    return status;
  }));
  sleep_until_done();
  return Ok{};
}

void SlowedDevice::lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) {
  CpuDevice::lend(buffers, std::move(meanwhile));
  is_lent_ = true;
}

void SlowedDevice::take_back() {
  is_lent_ = false;
  CpuDevice::take_back();
}

void SlowedDevice::sleep_until(Clock::time_point due) {
  while (is_lent_ && Clock::now() + kLentTurn < due) {
    yield_to_host();
    std::this_thread::sleep_for(kLentTurn);
  }
  std::this_thread::sleep_until(due);
}

std::span<const int32_t> SlowedDevice::ints(Slice slice, size_t count) const {
  const Buffer& buffer = buffers()[static_cast<size_t>(slice.buffer)];
  return {reinterpret_cast<const int32_t*>(buffer.memory.data()) + slice.offset, count};
}

std::span<const int32_t> SlowedDevice::experts(Slice chosen, int tokens, int chosen_count) {
  const auto all = ints(chosen, static_cast<size_t>(tokens) * static_cast<size_t>(chosen_count));
  experts_.assign(all.begin(), all.end());
  std::sort(experts_.begin(), experts_.end());
  experts_.erase(std::unique(experts_.begin(), experts_.end()), experts_.end());
  return experts_;
}

double SlowedDevice::read_by(const Matmul& op) {
  double bytes = 0;
  for (int i = 0; i < op.count; ++i) bytes += stored(op.products[i].matrix);
  return bytes;
}

double SlowedDevice::read_by(const HeadMatmul& op) {
  double bytes = 0;
  for (const MatrixId id : *op.matrices) bytes += stored(id);
  return bytes;
}

// Consecutive tokens of one sequence read its pages once.
double SlowedDevice::read_by(const Attention& op) {
  const auto positions = ints(op.positions, static_cast<size_t>(op.tokens));
  const auto lists = ints(op.list_offsets, static_cast<size_t>(op.tokens));
  double read = 0;
  for (size_t token = 0; token < positions.size(); ++token) {
    if (token + 1 < lists.size() && lists[token + 1] == lists[token]) continue;
    const int reached = positions[token] + 1;
    const int most = op.window > 0 ? op.window : op.chosen;
    read += most > 0 ? std::min(most, reached) : reached;
  }
  return read * op.pages.kv_heads * (op.pages.head_dim + op.pages.value_dim) * sizeof(float);
}

double SlowedDevice::read_by(const ExpertsUp& op) {
  double bytes = op.has_shared ? read_by(op.shared) : 0;
  for (const int32_t expert : experts(op.chosen, op.tokens, op.chosen_count)) {
    const auto index = static_cast<size_t>(expert);
    bytes += stored(op.matrices->gate[index]) + stored(op.matrices->up[index]);
  }
  return bytes;
}

double SlowedDevice::read_by(const ExpertsDown& op) {
  double bytes = op.has_shared ? stored(op.shared) : 0;
  for (const int32_t expert : experts(op.chosen, op.tokens, op.chosen_count)) {
    bytes += stored(op.matrices->down[static_cast<size_t>(expert)]);
  }
  return bytes;
}

}  // namespace lockstep

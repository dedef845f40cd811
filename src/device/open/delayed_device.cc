#include "device/open/delayed_device.h"

#include <algorithm>

#include "base/check.h"

namespace lockstep {

Result<BufferId> DelayedDevice::allocate(size_t bytes, Access access) {
  const BufferId id = TRY(CpuDevice::allocate(bytes, access));
  buffers().back().memory.set_accessible(false);
  return id;
}

void DelayedDevice::write(Slice target, std::span<const std::byte> bytes) {
  close_host_buffers();
  queued_.emplace_back(Write{target, {bytes.begin(), bytes.end()}});
}

void DelayedDevice::read(Slice source, std::span<std::byte> bytes) {
  LOCKSTEP_CHECK(host_may_look_);
  const Buffer& buffer = buffers()[static_cast<size_t>(source.buffer)];
  buffer.memory.set_accessible(true);
  CpuDevice::read(source, bytes);
  buffer.memory.set_accessible(buffer.access == Access::kHost);
}

void DelayedDevice::queue(const Operation& operation) {
  close_host_buffers();
  queued_.emplace_back(operation);
}

void DelayedDevice::open_to_operations() {
  host_may_look_ = false;
  for (const Buffer& buffer : buffers()) buffer.memory.set_accessible(true);
  set_lent_accessible(false);
}

void DelayedDevice::open_to_host() {
  set_lent_accessible(true);
  for (const Buffer& buffer : buffers()) {
    if (buffer.access == Access::kDevice) buffer.memory.set_accessible(false);
  }
  host_may_look_ = true;
}

Status DelayedDevice::run(const Turns& turn) {
  Status status = Ok{};
  open_to_operations();
  for (const Entry& entry : queued_) {
    if (const auto* write = std::get_if<Write>(&entry)) {
      CpuDevice::write(write->target, write->bytes);
      continue;
    }
    const Operation& operation = std::get<Operation>(entry);
    const auto* host = std::get_if<HostTurn>(&operation);
    if (host == nullptr) {
      CpuDevice::queue(operation);
      continue;
    }
    status = CpuDevice::run(nullptr);
    open_to_host();
    if (status.ok()) status = turn(host->number);
    open_to_operations();
    if (!status.ok()) break;
  }
  queued_.clear();
  if (status.ok()) status = CpuDevice::run(nullptr);
  open_to_host();
  return status;
}

std::span<float> DelayedDevice::host(BufferId buffer) {
  LOCKSTEP_CHECK(host_may_look_);
  return CpuDevice::host(buffer);
}

void DelayedDevice::close_host_buffers() {
  if (!host_may_look_) return;
  host_may_look_ = false;
  for (const Buffer& buffer : buffers()) buffer.memory.set_accessible(false);
  set_lent_accessible(true);
}

void DelayedDevice::lend(std::span<const BufferId> lent, std::function<void()> meanwhile) {
  LOCKSTEP_CHECK(host_may_look_);
  CpuDevice::lend(lent, std::move(meanwhile));
  std::copy(lent.begin(), lent.end(), lent_.begin());
  lent_count_ = lent.size();
}

void DelayedDevice::take_back() {
  if (!host_may_look_) set_lent_accessible(false);
  lent_count_ = 0;
  CpuDevice::take_back();
}

void DelayedDevice::yield_to_host() {
  set_lent_accessible(true);
  CpuDevice::yield_to_host();
  set_lent_accessible(false);
}

void DelayedDevice::set_lent_accessible(bool accessible) {
  for (size_t i = 0; i < lent_count_; ++i) {
    buffers()[static_cast<size_t>(lent_[i])].memory.set_accessible(accessible);
  }
}

}  // namespace lockstep

#include "device/open/delayed_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace lockstep {

Result<BufferId> DelayedDevice::allocate(size_t bytes, Access access) {
  Region& all = region(access);
  if (!all.memory) {
    all.memory.emplace(TRY(DeviceMemory::reserve(kRegionBytes)));
    all.memory->set_accessible(false);
  }
  if (DeviceMemory::page_bytes(bytes) > kRegionBytes - all.used) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the test device has room for {} GiB of buffers of a kind; use the "
                             "device cpu",
                             kRegionBytes >> 30)};
  }
  DeviceMemory memory = DeviceMemory::part_of(*all.memory, all.used, bytes);
  all.used += memory.bytes();
  return add_buffer(std::move(memory), bytes, access);
}

void DelayedDevice::set_accessible(const Region& region, bool accessible) {
  if (region.used == 0) return;
  DeviceMemory::part_of(*region.memory, 0, region.used).set_accessible(accessible);
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
  set_accessible(host_, true);
  set_accessible(private_, true);
  set_lent_accessible(false);
}

void DelayedDevice::open_to_host() {
  set_lent_accessible(true);
  set_accessible(private_, false);
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
  set_accessible(host_, false);
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

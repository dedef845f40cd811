// DelayedDevice: a test device that enforces the separation of host and device. It runs nothing
// until run(). The host cannot touch its buffers (a segmentation fault), except kHost buffers in
// its turns, between run() and the next queued operation, or while they are lent; then operations
// cannot touch them. It computes the same as CpuDevice.
#pragma once

#include <array>
#include <optional>
#include <variant>

#include "device/cpu/cpu_device.h"

namespace lockstep {

class DelayedDevice final : public CpuDevice {
 public:
  explicit DelayedDevice(const DeviceOptions& options) : CpuDevice(options) {}

  Result<BufferId> allocate(size_t bytes, Access access) override;
  void write(Slice target, std::span<const std::byte> bytes) override;
  void read(Slice source, std::span<std::byte> bytes) override;
  void queue(const Operation& operation) override;
  Status run(const Turns& turn) override;
  std::span<float> host(BufferId buffer) override;
  void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) override;
  void take_back() override;

 private:
  void yield_to_host() override;
  struct Write {
    Slice target;
    std::vector<std::byte> bytes;
  };
  using Entry = std::variant<Operation, Write>;

  // The buffers of one access, one after the other, so that one system call opens or closes them.
  struct Region {
    std::optional<DeviceMemory> memory;  // reserved with the first buffer
    size_t used = 0;
  };
  static constexpr size_t kRegionBytes = size_t{8} << 30;

  Region& region(Access access) { return access == Access::kHost ? host_ : private_; }
  static void set_accessible(const Region& region, bool accessible);
  void open_to_operations();
  void open_to_host();
  void close_host_buffers();
  void set_lent_accessible(bool accessible);

  Region host_;
  Region private_;
  std::vector<Entry> queued_;
  bool host_may_look_ = false;
  std::array<BufferId, kLentMax> lent_{};
  size_t lent_count_ = 0;
};

}  // namespace lockstep

// SlowedDevice: computes what CpuDevice computes, in the time of a slower machine: wait() sleeps
// until a machine would be done that reads so many bytes a second and takes so long for every
// operation besides. A sleeper needs no core, so that one machine plays several (`lockstep bench
// placement`). What is read are the stored bytes of weights, and keys and values; arithmetic
// beyond that takes no time, so prompts are too quick.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "device/cpu_device.h"

namespace lockstep {

struct SlowedMachine {
  double read_gb_s = 0;  // positive
  double kernel_us = 0;  // of every operation, besides reading
};

// Of "slowed:READ_GB_S" or "slowed:READ_GB_S/KERNEL_US"; nothing where the text is something else.
std::optional<SlowedMachine> parse_slowed(std::string_view kind);

// Of kinds of devices with commas between them, the one of a rank; a single one is every rank's.
// kInvalidArgument where there are fewer than ranks.
Result<std::string_view> device_kind_of(std::string_view kinds, int rank);

class SlowedDevice final : public CpuDevice {
 public:
  SlowedDevice(const DeviceOptions& options, const SlowedMachine& machine)
      : CpuDevice(options), machine_(machine) {}

  Result<MatrixId> pack(const MatrixSource& source) override;
  void write(Slice target, std::span<const std::byte> bytes) override;
  void queue(const Operation& operation) override;
  Status wait() override;
  void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) override;
  void take_back() override;

 private:
  using Clock = std::chrono::steady_clock;

  void begin();
  void sleep_until(Clock::time_point due);
  double stored(MatrixId id) const { return stored_bytes_[static_cast<size_t>(id)]; }
  std::span<const int32_t> ints(Slice slice, size_t count) const;
  // The numbers of the experts that a step chose, each once.
  std::span<const int32_t> experts(Slice chosen, int tokens, int chosen_count);

  double read_by(const Matmul& op) { return stored(op.matrix); }
  double read_by(const HeadMatmul& op);
  double read_by(const Attention& op);
  double read_by(const ExpertsUp& op);
  double read_by(const ExpertsDown& op);
  template <class Other>
  double read_by(const Other&) {
    return 0;
  }

  const SlowedMachine machine_;
  std::vector<double> stored_bytes_;        // (matrices)
  std::vector<int32_t> experts_;            // scratch
  std::optional<Clock::time_point> begun_;  // when the first operation since wait() was queued
  double work_us_ = 0;                      // of what was queued since then
  Clock::duration late_{};                  // of the last wait(), made up for by the next
  bool is_lent_ = false;
};

}  // namespace lockstep

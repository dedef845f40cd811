// SlowedDevice: a CpuDevice with the speed of a slower machine: run() sleeps, at each turn of the
// host and at its end, until a machine with the given read rate and time per operation would be
// done. A sleeper needs no core, so one machine can play several (`lockstep bench placement`).
// Counted as read are the stored bytes of weights, and keys and values; other arithmetic takes no
// time, so prompts are too fast.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "device/device_kinds.h"

namespace lockstep {

class SlowedDevice final : public CpuDevice {
 public:
  SlowedDevice(const DeviceOptions& options, const SlowedMachine& machine)
      : CpuDevice(options), machine_(machine) {}

  Result<MatrixId> pack(const MatrixSource& source) override;
  Status run(const Turns& turn) override;
  void lend(std::span<const BufferId> buffers, std::function<void()> meanwhile) override;
  void take_back() override;

 private:
  using Clock = std::chrono::steady_clock;

  void has_run(const Operation& operation) override;
  // Until the operations that have run since `begun_` would be done.
  void sleep_until_done();
  void sleep_until(Clock::time_point due);
  double stored(MatrixId id) const { return stored_bytes_[static_cast<size_t>(id)]; }
  std::span<const int32_t> ints(Slice slice, size_t count) const;
  // The distinct experts that a step chose.
  std::span<const int32_t> experts(Slice chosen, int tokens, int chosen_count);

  double read_by(const Matmul& op);
  double read_by(const GatedUp& op) { return stored(op.gate) + stored(op.up); }
  double read_by(const HeadMatmul& op);
  double read_by(const Attention& op);
  double read_by(const ExpertsUp& op);
  double read_by(const ExpertsDown& op);
  template <class Other>
  double read_by(const Other&) {
    return 0;
  }

  const SlowedMachine machine_;
  std::vector<double> stored_bytes_;  // (matrices)
  std::vector<int32_t> experts_;      // scratch
  Clock::time_point begun_{};         // when the operations since the last sleep began
  double work_us_ = 0;                // of those operations
  Clock::duration late_{};            // of the last sleep; the next one compensates
  bool is_lent_ = false;
};

}  // namespace lockstep

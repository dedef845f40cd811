// NullDevice: accepts everything and stores nothing. For code that runs a loader to learn what it
// asks for (model/load/rank_reads.h, and CountingDevice). One thread.
#pragma once

#include "device/device.h"

namespace lockstep {

class NullDevice : public Device {
 public:
  Result<BufferId> allocate(size_t /*bytes*/, Access /*access*/) override { return BufferId{}; }
  Result<MatrixId> pack(const MatrixSource& /*source*/) override { return MatrixId{}; }
  void write(Slice /*target*/, std::span<const std::byte> /*bytes*/) override {}
  void read(Slice /*source*/, std::span<std::byte> /*bytes*/) override {}
  void queue(const Operation& /*operation*/) override {}
  Status run(const Turns& /*turn*/) override { return Ok{}; }
  std::span<float> host(BufferId /*buffer*/) override { return {}; }
  void lend(std::span<const BufferId> /*buffers*/, std::function<void()> /*meanwhile*/) override {}
  void take_back() override {}
  uint64_t wait_count() const override { return 0; }
  std::string description() const override { return "none"; }
};

}  // namespace lockstep

// Turns of the host within a run, on any device.
#pragma once

#include <doctest/doctest.h>

#include <vector>

#include "device/device_values.h"

namespace lockstep::testing {

// The host doubles a sum between two operations, twice.
inline void check_turns(Device& device) {
  constexpr size_t kCount = 300;
  const Slice sum = put(device, std::vector<float>(kCount, 1.0f), Access::kHost);
  const Slice x = put(device, std::vector<float>(kCount, 2.0f));
  const uint64_t before = device.wait_count();
  std::vector<int> numbers;
  for (int round = 0; round < 2; ++round) {
    numbers.clear();
    device.queue(Add{x, kCount, sum});
    device.queue(HostTurn{7});
    device.queue(Add{x, kCount, sum});
    device.queue(HostTurn{3});
    device.queue(HostTurn{4});
    device.queue(Add{x, kCount, sum});
    REQUIRE(device
                .run([&](int number) -> Status {
                  numbers.push_back(number);
                  for (float& value : device.host(sum.buffer).first(kCount)) value *= 2;
                  return Ok{};
                })
                .ok());
    CHECK(numbers == std::vector<int>{7, 3, 4});
    const float expected = round == 0 ? ((1 + 2) * 2 + 2) * 4 + 2 : ((34 + 2) * 2 + 2) * 4 + 2;
    CHECK(device.host(sum.buffer)[0] == expected);
    CHECK(device.host(sum.buffer)[kCount - 1] == expected);
  }
  CHECK(device.wait_count() - before == 8);
}

// An error in a turn ends the run, and the device can go on.
inline void check_failed_turn(Device& device) {
  const Slice sum = put(device, std::vector<float>(4, 1.0f), Access::kHost);
  int turns = 0;
  device.queue(Add{sum, 4, sum});
  for (int i = 0; i < 3; ++i) device.queue(HostTurn{i});
  const Status failed = device.run([&](int number) -> Status {
    ++turns;
    if (number == 1) return Error{ErrorCode::kPeerLost, "gone"};
    return Ok{};
  });
  REQUIRE(!failed.ok());
  CHECK(failed.error().message == "gone");
  CHECK(turns == 2);
  CHECK(device.wait().ok());  // nothing is left
  const std::vector<float> threes(4, 3.0f);
  device.write(sum, std::as_bytes(std::span<const float>(threes)));
  device.queue(Add{sum, 4, sum});
  CHECK(device.wait().ok());
  CHECK(device.host(sum.buffer)[3] == 6.0f);
}

}  // namespace lockstep::testing

#include "device/device.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <random>

#include "device/open/read_probe.h"
#include "device/turns.h"
#include "kernels/isa.h"
#include "tensor/half.h"

using namespace lockstep;

namespace {

constexpr int kRows = 37, kColumns = 24, kInputRows = 3;

std::unique_ptr<Device> device_of(const char* kind, int threads = 1) {
  auto device =
      open_device({.kind = kind, .threads = threads, .kernels = available_kernels().back()});
  REQUIRE(device.ok());
  return std::move(device.value());
}

std::vector<float> numbers(size_t count) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

// Multiplies, doubles the result twice, and reads it: operations whose order matters.
std::vector<float> fourfold_product(Device& device) {
  const std::vector<float> weights = numbers(kRows * kColumns),
                           input = numbers(kInputRows * kColumns);
  auto matrix = device.pack({.stored = {.rows = kRows,
                                        .columns = kColumns,
                                        .codes = std::as_bytes(std::span<const float>(weights)),
                                        .row_bytes = kColumns * 4},
                             .rows = kRows,
                             .columns = kColumns,
                             .steps = {{kColumns, 0, 1}}});
  auto in = device.allocate(input.size() * 4, Access::kDevice);
  auto out = device.allocate(kInputRows * kRows * 4, Access::kHost);
  REQUIRE(matrix.ok());
  REQUIRE(in.ok());
  REQUIRE(out.ok());
  const Slice x{in.value(), 0}, y{out.value(), 0};
  device.write(x, std::as_bytes(std::span<const float>(input)));
  device.queue(Matmul{x, kInputRows, {{matrix.value(), y}}});
  device.queue(Add{y, kInputRows * kRows, y});
  REQUIRE(device.wait().ok());
  device.queue(Add{y, kInputRows * kRows, y});
  REQUIRE(device.wait().ok());
  CHECK(device.wait_count() == 2);
  const auto host = device.host(out.value());
  return {host.begin(), host.end()};
}

// True if `touch` kills the process with SIGSEGV or an abort.
template <class Touch>
bool dies(Touch touch) {
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
    for (const int signal : {SIGSEGV, SIGABRT, SIGBUS})
      std::signal(signal, SIG_DFL);  // not doctest's
    touch();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;  // a sanitizer exits instead
}

}  // namespace

TEST_CASE("queued operations give the product, on every kind of device and with threads") {
  const std::vector<float> weights = numbers(kRows * kColumns),
                           input = numbers(kInputRows * kColumns);
  const auto cpu = device_of("cpu"), team = device_of("cpu", 3), delayed = device_of("delayed");
  const std::vector<float> expected = fourfold_product(*cpu);
  for (int token = 0; token < kInputRows; ++token) {
    for (int row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int k = 0; k < kColumns; ++k) {
        sum += double{weights[static_cast<size_t>(row * kColumns + k)]} *
               input[static_cast<size_t>(token * kColumns + k)];
      }
      CHECK(expected[static_cast<size_t>(token * kRows + row)] == doctest::Approx(4 * sum));
    }
  }
  CHECK(fourfold_product(*team) == expected);
  CHECK(fourfold_product(*delayed) == expected);
}

TEST_CASE("a run stops for the host's turns, and goes on with what it has written") {
  for (const char* kind : {"cpu", "delayed"}) {
    CAPTURE(kind);
    testing::check_turns(*device_of(kind));
    testing::check_failed_turn(*device_of(kind));
  }
}

TEST_CASE("the host can touch the test device's buffers only in its turns") {
  const auto device = device_of("delayed");
  const auto hidden = device->allocate(4096, Access::kDevice);
  const auto shared = device->allocate(4096, Access::kHost);
  device->queue(Add{{shared.value(), 0}, 1, {shared.value(), 0}});
  device->queue(HostTurn{});
  float* seen = nullptr;
  REQUIRE(device
              ->run([&](int) -> Status {
                seen = device->host(shared.value()).data();
                seen[0] = 1;
                CHECK(dies([&] { static_cast<void>(device->host(hidden.value())); }));
                return Ok{};
              })
              .ok());
  CHECK(seen[0] == 1);
}

TEST_CASE("the host can touch the test device's buffers only after a wait") {
  const auto device = device_of("delayed");
  const auto hidden = device->allocate(4096, Access::kDevice);
  const auto shared = device->allocate(4096, Access::kHost);
  REQUIRE(device->wait().ok());
  float* seen = device->host(shared.value()).data();
  seen[0] = 1;  // allowed now
  CHECK(dies([&] { static_cast<void>(device->host(hidden.value())); }));
  device->queue(Add{{shared.value(), 0}, 1, {shared.value(), 0}});
  CHECK(dies([&] { static_cast<void>(device->host(shared.value())); }));
  CHECK(dies([&] { *static_cast<volatile float*>(seen) = 2; }));
  REQUIRE(device->wait().ok());
  CHECK(device->host(shared.value())[0] == 2);
}

TEST_CASE("lent memory stays the host's while the test device runs, and no operation may use it") {
  const auto device = device_of("delayed");
  const auto lent = device->allocate(4096, Access::kHost).value();
  const auto other = device->allocate(4096, Access::kHost).value();
  REQUIRE(device->wait().ok());
  float* seen = device->host(lent).data();
  device->host(other)[0] = 1;
  int calls = 0;
  device->lend(std::array{lent}, [&] { seen[0] = static_cast<float>(++calls); });
  device->queue(Add{{other, 0}, 1, {other, 0}});
  seen[1] = 3;  // allowed, though operations are queued
  CHECK(dies([&] { static_cast<void>(device->host(other)); }));
  REQUIRE(device->wait().ok());
  CHECK(calls > 0);
  CHECK(seen[0] == static_cast<float>(calls));
  CHECK(device->host(other)[0] == 2);
  CHECK(dies([&] {
    device->queue(Add{{lent, 0}, 1, {other, 0}});
    static_cast<void>(device->wait());
  }));
  device->take_back();
  const int calls_before = calls;
  device->queue(Add{{lent, 1}, 1, {other, 0}});
  CHECK(dies([&] { *static_cast<volatile float*>(seen) = 2; }));
  REQUIRE(device->wait().ok());
  CHECK(device->host(other)[0] == 5);
  CHECK(calls == calls_before);
}

TEST_CASE("a lent device's smaller pieces give the same bits, with the host's turns in between") {
  for (const int threads : {1, 3}) {
    const auto device = device_of("cpu", threads);
    const std::vector<float> expected = fourfold_product(*device_of("cpu", threads));
    const auto lent = device->allocate(64, Access::kHost).value();
    int calls = 0;
    device->lend(std::array{lent}, [&] { ++calls; });
    CHECK(fourfold_product(*device) == expected);
    CHECK(calls > 0);
  }
}

TEST_CASE("a sum fused with the norm after it has the bits of both separately") {
  const std::vector<float> added = numbers(kInputRows * kColumns);
  std::vector<float> sum(added.rbegin(), added.rend()), weight = numbers(kColumns);
  const auto run = [&](Device& device, bool is_fused) {
    const auto buffer = [&](const std::vector<float>& values) {
      const auto id = device.allocate(values.size() * 4, Access::kHost);
      REQUIRE(id.ok());
      device.write({id.value(), 0}, std::as_bytes(std::span<const float>(values)));
      return Slice{id.value(), 0};
    };
    const Slice x = buffer(added), total = buffer(sum), scale = buffer(weight), y = buffer(sum);
    constexpr float kEpsilon = 1e-5f;
    if (is_fused) {
      device.queue(AddRmsNorm{x, total, scale, kInputRows, kColumns, kEpsilon, y});
    } else {
      device.queue(Add{x, kInputRows * kColumns, total});
      device.queue(RmsNorm{total, scale, kInputRows, kColumns, kEpsilon, y});
    }
    REQUIRE(device.wait().ok());
    std::vector<float> both;
    for (const Slice result : {total, y}) {
      const auto values = device.host(result.buffer).first(kInputRows * kColumns);
      both.insert(both.end(), values.begin(), values.end());
    }
    return both;
  };
  const auto cpu = device_of("cpu"), team = device_of("cpu", 3), delayed = device_of("delayed");
  const std::vector<float> expected = run(*cpu, false);
  CHECK(expected[0] == sum[0] + added[0]);
  CHECK(run(*cpu, true) == expected);
  CHECK(run(*team, true) == expected);
  CHECK(run(*delayed, true) == expected);
}

TEST_CASE("the source of a write may change after the call") {
  for (const char* kind : {"cpu", "delayed"}) {
    const auto device = device_of(kind);
    const Slice place{device->allocate(64, Access::kHost).value(), 0};
    std::vector<float> values{1, 2, 3};
    device->write(place, std::as_bytes(std::span<const float>(values)));
    values[1] = 100;
    REQUIRE(device->wait().ok());
    CHECK(device->host(place.buffer)[1] == 2);
  }
}

TEST_CASE("columns that were computed separately are joined, and those between them stay") {
  for (const char* kind : {"cpu", "delayed"}) {
    const auto device = device_of(kind);
    const Slice from{device->allocate(64, Access::kDevice).value(), 1};
    const Slice to{device->allocate(64, Access::kHost).value(), 0};
    const std::vector<float> zeros(8), values{1, 2, 3, 4, 5, 6};
    device->write(to, std::as_bytes(std::span<const float>(zeros)));
    device->write(from, std::as_bytes(std::span<const float>(values)));
    const auto place = [&](size_t offset, int count, int columns, size_t at) {
      device->queue(CopyColumns{.input = {from.buffer, 1 + offset},
                                .count = count,
                                .columns = columns,
                                .output = {to.buffer, at},
                                .output_stride = 4});
    };
    place(0, 2, 2, 2);
    place(4, 2, 1, 0);
    place(0, 0, 2, 0);
    place(0, 2, 0, 0);
    REQUIRE(device->wait().ok());
    const auto host = device->host(to.buffer).first(8);
    CHECK(std::vector<float>(host.begin(), host.end()) ==
          std::vector<float>{5, 0, 1, 2, 6, 0, 3, 4});
  }
}

TEST_CASE("an unknown kind of device is refused with the known ones") {
  const auto device = open_device({.kind = "gpu", .kernels = available_kernels().front()});
  REQUIRE(!device.ok());
  CHECK(device.error().message == "there is no device \"gpu\"; use auto, cpu, vulkan or vulkan:N");
}

TEST_CASE("halves become floats exactly, also subnormal and infinite ones") {
  CHECK(float_of_f16(0x3c00) == 1.0f);
  CHECK(float_of_f16(0x0001) == 0x1p-24f);
  CHECK(float_of_f16(0x83ff) == -0x3ffp-24f);
  CHECK(float_of_f16(0x7bff) == 65504.0f);
  CHECK(float_of_f16(0xfc00) == -INFINITY);
  CHECK(std::isnan(float_of_f16(0x7e00)));
  CHECK(float_of_bf16(0x3f80) == 1.0f);
}

TEST_CASE("a buffer that the host cannot touch can be copied out after a wait") {
  for (const char* kind : {"cpu", "delayed"}) {
    CAPTURE(kind);
    const auto device = device_of(kind);
    const std::vector<float> written = numbers(20);
    for (const Access access : {Access::kDevice, Access::kHost}) {
      const BufferId buffer = device->allocate(4096, access).value();
      device->write({buffer, 3}, std::as_bytes(std::span(written)));
      device->queue(Add{{buffer, 3}, 1, {buffer, 3}});
      REQUIRE(device->wait().ok());
      std::vector<float> read(18);
      device->read({buffer, 5}, std::as_writable_bytes(std::span(read)));
      CHECK(read == std::vector<float>(written.begin() + 2, written.end()));
      device->read({buffer, 3}, std::as_writable_bytes(std::span(read).first(1)));
      CHECK(read[0] == 2 * written[0]);
      device->read({buffer, 0}, {});
    }
  }
}

TEST_CASE("the test device refuses access while operations are queued") {
  const auto device = device_of("delayed");
  const BufferId buffer = device->allocate(4096, Access::kDevice).value();
  std::vector<float> read(1);
  const auto bytes = std::as_writable_bytes(std::span(read));
  CHECK(dies([&] { device->read({buffer, 0}, bytes); }));
  REQUIRE(device->wait().ok());
  device->read({buffer, 0}, bytes);
  device->queue(Add{{buffer, 0}, 1, {buffer, 0}});
  CHECK(dies([&] { device->read({buffer, 0}, bytes); }));
}

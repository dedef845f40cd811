#include "device/open/slowed_device.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "kernels/isa.h"

using namespace lockstep;

namespace {

constexpr int kSide = 64;  // rows and columns of the matrix
constexpr size_t kStoredBytes = sizeof(float) * kSide * kSide;

struct Product {
  std::vector<float> values;
  double seconds = 0;
};

// The product with a matrix of kStoredBytes, `times` times, and the time until wait() returns.
Product multiply(const std::string& kind, int times) {
  auto device = open_device({.kind = kind, .kernels = available_kernels().back()});
  REQUIRE(device.ok());
  const std::vector<float> weights(kSide * kSide, 0.5f), input(kSide, 2.0f);
  const auto matrix =
      device.value()->pack({.stored = {.rows = kSide,
                                       .columns = kSide,
                                       .codes = std::as_bytes(std::span<const float>(weights)),
                                       .row_bytes = kSide * sizeof(float)},
                            .rows = kSide,
                            .columns = kSide,
                            .steps = {{kSide, 0, 1}}});
  const auto x = device.value()->allocate(kSide * sizeof(float), Access::kDevice);
  const auto y = device.value()->allocate(kSide * sizeof(float), Access::kHost);
  REQUIRE(matrix.ok());
  REQUIRE(x.ok());
  REQUIRE(y.ok());
  const auto begin = std::chrono::steady_clock::now();
  device.value()->write({x.value(), 0}, std::as_bytes(std::span<const float>(input)));
  for (int i = 0; i < times; ++i) {
    device.value()->queue(Matmul{{x.value(), 0}, 1, {{matrix.value(), {y.value(), 0}}}});
  }
  REQUIRE(device.value()->wait().ok());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const auto host = device.value()->host(y.value());
  return {{host.begin(), host.end()}, took.count()};
}

}  // namespace

TEST_CASE("a slowed device computes the same and takes the time its reads and operations cost") {
  const Product quick = multiply("cpu", 10);
  const Product reading = multiply("slowed:0.01", 10);  // 10 x 16 KiB at 10 MB/s
  CHECK(reading.values == quick.values);
  CHECK(reading.seconds >= 10 * kStoredBytes / 0.01e9);
  const Product operations = multiply("slowed:1000/2000", 10);
  CHECK(operations.values == quick.values);
  CHECK(operations.seconds >= 10 * 0.002);
}

TEST_CASE("an invalid description is not a device") {
  for (const char* kind : {"slowed:", "slowed:0", "slowed:-1", "slowed:1/", "slowed:1/x",
                           "slowed:1/-1", "slowed:nan", "slowed:1e99", "slowed:1 "}) {
    INFO(kind);
    CHECK(!open_device({.kind = kind, .kernels = available_kernels().back()}).ok());
  }
  CHECK(parse_slowed("slowed:0.5/20")->kernel_us == 20);
  CHECK(parse_slowed("slowed:0.5")->read_gb_s == 0.5);
}

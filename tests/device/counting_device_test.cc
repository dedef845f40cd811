#include "device/packing/counting_device.h"

#include <doctest/doctest.h>

#include <vector>

#include "device/packing/packing.h"

using namespace lockstep;

namespace {

constexpr int kCountedRows = 96;
constexpr int kCountedColumns = 64;

// Rows of a plain matrix.
MatrixSource counted_part(const std::vector<std::byte>& elements, int row_begin, int rows) {
  return {.stored = {.rows = kCountedRows,
                     .columns = kCountedColumns,
                     .codes = elements,
                     .row_bytes = kCountedColumns * 4,
                     .scale_type = DType::kF32},
          .row_begin = row_begin,
          .rows = rows,
          .columns = kCountedColumns,
          .steps = {{.columns = kCountedColumns, .merges = 0, .ends_subtree = 1}}};
}

}  // namespace

TEST_CASE("a counting device adds up all that is allocated and laid out") {
  const std::vector<std::byte> elements(size_t{kCountedRows} * kCountedColumns * 4);
  CountingDevice device;
  REQUIRE(device.allocate(100, Access::kDevice).ok());
  REQUIRE(device.allocate(28, Access::kHost).ok());
  CHECK(device.allocated_bytes() == 128);
  uint64_t expected = 0;
  for (const int row_begin : {0, 16, 32, 33, 48}) {
    for (const int rows : {16, 17, 1, 0}) {
      const MatrixSource source = counted_part(elements, row_begin, rows);
      const auto plan = plan_packing(source, false);
      REQUIRE(plan.ok());
      expected += plan.value().bytes();
      REQUIRE(device.pack(source).ok());
      CHECK(device.packed_bytes() == expected);
    }
  }
  CHECK(device.allocated_bytes() == 128);
}

TEST_CASE("a counting device refuses a matrix that cannot be laid out") {
  const std::vector<std::byte> elements(100);
  CountingDevice device;
  CHECK(device.pack(counted_part(elements, 0, 16)).error().code == ErrorCode::kCorrupt);
  CHECK(device.packed_bytes() == 0);
}

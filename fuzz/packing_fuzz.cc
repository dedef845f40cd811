// links: device
// A stored matrix with any description is refused or packed without reading a byte outside its
// parts, and its rows can be read. The first bytes describe the matrix, the rest fills its parts.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "device/packing/packing.h"
#include "tensor/stored_check.h"
#include "tensor/stored_rows.h"

using namespace lockstep;

namespace {

constexpr int kSizeMax = 600;
constexpr size_t kPartBytesMax = 1 << 16;

// A copy with its exact size, so that the sanitizer sees a read beyond it.
std::vector<std::byte> part_of(FuzzedDataProvider& data) {
  std::vector<std::byte> part(data.ConsumeIntegralInRange<size_t>(0, kPartBytesMax));
  const auto fill = data.ConsumeBytes<uint8_t>(part.size() / 8);
  for (size_t i = 0; i < part.size(); ++i) {
    part[i] = fill.empty() ? std::byte{0} : std::byte{fill[i % fill.size()]};
  }
  return part;
}

std::vector<LeafStep> leaves_of(FuzzedDataProvider& data, int columns) {
  std::vector<LeafStep> steps;
  while (columns > 0) {
    const int leaf = data.ConsumeIntegralInRange(1, columns);
    steps.push_back({.columns = leaf, .merges = 0, .ends_subtree = 1});
    columns -= leaf;
  }
  return steps;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  StoredMatrix stored;
  stored.format = static_cast<StoredFormat>(data.ConsumeIntegralInRange(0, 7));
  stored.rows = data.ConsumeIntegralInRange(1, kSizeMax);
  stored.columns = data.ConsumeIntegralInRange(1, kSizeMax);
  stored.row_bytes = data.ConsumeIntegralInRange<size_t>(0, 4 * kSizeMax);
  stored.bits = data.ConsumeIntegralInRange(0, 9);
  stored.group = data.ConsumeIntegralInRange(-1, 2 * kSizeMax);
  stored.row_group = data.ConsumeIntegralInRange(-1, 2 * kSizeMax);
  stored.scale_type = static_cast<DType>(data.ConsumeIntegralInRange(0, 9));
  stored.zero_bias = data.ConsumeIntegralInRange(0, 1);
  stored.gguf_type = data.ConsumeIntegralInRange<uint32_t>(0, 40);
  const int rows = data.ConsumeIntegralInRange(0, stored.rows);
  const int columns = data.ConsumeIntegralInRange(1, stored.columns);
  const bool is_transposed = data.ConsumeBool(), keeps_float_input = data.ConsumeBool();
  MatrixSource source{
      .row_begin = data.ConsumeIntegralInRange(0, stored.rows - rows),
      .rows = rows,
      .column_begin = data.ConsumeIntegralInRange(0, stored.columns - columns),
      .columns = columns,
      .is_transposed = is_transposed,
      .steps = leaves_of(data, is_transposed ? rows : columns),
  };
  const auto codes = part_of(data), scales = part_of(data), biases = part_of(data),
             zeros = part_of(data), groups = part_of(data);
  stored.codes = codes;
  stored.scales = scales;
  stored.biases = biases;
  stored.zeros = zeros;
  stored.groups = groups;
  std::vector<int32_t> column_map;
  if (!is_transposed && data.ConsumeBool()) {
    stored.column_group =
        32 * data.ConsumeIntegralInRange(0, 4) + data.ConsumeIntegralInRange(0, 1);
    const int count = stored.columns / std::max(1, stored.column_group);
    for (int i = 0; i < count; ++i) column_map.push_back(data.ConsumeIntegralInRange(-1, count));
    stored.column_map = column_map;
  }
  source.stored = stored;

  const auto plan = plan_packing(source, keeps_float_input);
  if (!plan.ok()) {
    LOCKSTEP_CHECK(!plan.error().message.empty());
    return 0;
  }
  std::vector<std::byte> tiles(plan.value().bytes());
  pack_tiles(source, plan.value(), 0, tile_count(plan.value().matrix.rows), tiles.data());
  if (!check_stored_matrix(stored).ok()) return 0;
  std::vector<float> row(static_cast<size_t>(stored.columns));
  dequantise_row(stored, stored.rows - 1, 0, row);
  return 0;
}

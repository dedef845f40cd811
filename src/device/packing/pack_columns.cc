#include "device/packing/pack_columns.h"

#include <algorithm>
#include <cstring>

#include "tensor/half.h"
#include "tensor/stored_check.h"
#include "tensor/stored_codes.h"

namespace lockstep {

std::optional<PackedCodes> coded_columns_of(const MatrixSource& source) {
  const StoredMatrix& stored = source.stored;
  const bool has_float_scales =
      stored.format == StoredFormat::kAffine ||
      (stored.format == StoredFormat::kFp8 && stored.scale_type != DType::kF8E8M0);
  const bool is_aligned =
      stored.group == 0 || (stored.group % kLanes == 0 && source.column_begin % kLanes == 0);
  if (!source.is_transposed || !has_float_scales || !is_aligned || stored.factor != 1) {
    return std::nullopt;
  }
  if (stored.format == StoredFormat::kFp8) return PackedCodes::kColumnFp8;
  return stored.bits <= 4 ? PackedCodes::kColumnBits4 : PackedCodes::kColumnBits8;
}

void pack_coded_columns(const MatrixSource& source, PackedCodes codes, int tile,
                        std::byte* packed) {
  const StoredMatrix& stored = source.stored;
  const int first = tile * kLanes, count = std::min(kLanes, source.columns - first);
  const int begin = source.column_begin + first;
  const size_t group = scale_group_of(stored, begin);
  const size_t bytes = column_bytes(codes);
  with_stored_codes(stored, [&](const auto& reader, const CodeMeaning&) {
    for (int row = 0; row < source.rows; ++row, packed += bytes) {
      const int stored_row = stored.stored_row(source.row_begin + row);
      const size_t at = row_group_of(stored, stored_row) * scale_groups(stored) + group;
      ColumnScale by{load_element(stored.scales.data(), stored.scale_type, at), 0};
      if (!stored.biases.empty()) {
        by.bias = load_element(stored.biases.data(), stored.scale_type, at);
      }
      uint8_t of_rows[kLanes] = {};
      reader.read_part(stored_row, begin, count, of_rows);
      if (codes == PackedCodes::kColumnBits4) {
        for (int i = 0; i < kLanes / 2; ++i) {
          of_rows[i] = static_cast<uint8_t>(of_rows[2 * i] | of_rows[2 * i + 1] << 4);
        }
      }
      std::memcpy(packed, &by, sizeof by);
      std::memcpy(packed + sizeof by, of_rows, bytes - sizeof by);
    }
  });
}

}  // namespace lockstep

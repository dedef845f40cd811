#include "device/packing/pack_layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "device/packing/pack_columns.h"
#include "tensor/stored_check.h"
#include "tensor/stored_codes.h"

namespace lockstep {
namespace {

PackedCodes packed_bits(int bits) {
  switch (bits) {
    case 2:
      return PackedCodes::kBits2;
    case 3:
      return PackedCodes::kBits3;
    case 4:
      return PackedCodes::kBits4;
    case 5:
      return PackedCodes::kBits5;
    case 6:
      return PackedCodes::kBits6;
    default:
      LOCKSTEP_CHECK(bits == 8);
      return PackedCodes::kBits8;
  }
}

// The kinds for F32, F16 and BF16 follow each other in this order.
PackedScales scales_of_type(PackedScales for_f32, DType type) {
  const int index = type == DType::kF32 ? 0 : type == DType::kF16 ? 1 : 2;
  return static_cast<PackedScales>(static_cast<int>(for_f32) + index);
}
static_assert(static_cast<int>(PackedScales::kBF16) == static_cast<int>(PackedScales::kF32) + 2 &&
              static_cast<int>(PackedScales::kBF16Bias) ==
                  static_cast<int>(PackedScales::kF32Bias) + 2 &&
              static_cast<int>(PackedScales::kBF16Zero) ==
                  static_cast<int>(PackedScales::kF32Zero) + 2);

PackedCodes plain_codes(DType type) {
  if (type == DType::kF32) return PackedCodes::kF32;
  return type == DType::kF16 ? PackedCodes::kF16 : PackedCodes::kBF16;
}

// Whether a column's group does not follow from its number.
bool has_act_order(const StoredMatrix& stored) {
  if (stored.groups.empty()) return false;
  for (int column = 0; column < stored.columns; ++column) {
    int32_t group = 0;
    std::memcpy(&group, stored.groups.data() + static_cast<size_t>(column) * 4, 4);
    if (static_cast<size_t>(group) != scale_group_of(stored, column)) return true;
  }
  return false;
}

// GPTQ with 8 bits may have a zero point of 256, which does not fit in packed scales.
bool has_large_zero(const StoredMatrix& stored) {
  if (stored.format != StoredFormat::kGptq || stored.bits != 8 || stored.zero_bias == 0) {
    return false;
  }
  return std::find(stored.zeros.begin(), stored.zeros.end(), std::byte{255}) != stored.zeros.end();
}

bool halves_exactly(float factor) {
  return factor * 0.5f * 2 == factor;
}

// Whether float32 is the only packed form.
bool must_expand(const MatrixSource& source) {
  const StoredMatrix& stored = source.stored;
  if (plain_element_type(stored)) return stored.factor != 1;
  if (source.is_transposed) return true;
  if (stored.format == StoredFormat::kFp4) return !halves_exactly(stored.factor);
  if (stored.format == StoredFormat::kFp8 && stored.scale_type == DType::kF8E8M0) return false;
  return stored.factor != 1 || has_act_order(stored) || has_large_zero(stored);
}

// Whether all rows of each tile share one row of scales.
bool has_tile_scales(const MatrixSource& source) {
  const StoredMatrix& stored = source.stored;
  if (stored.row_group == 0) return true;
  return stored.row_map.empty() && stored.row_group % kLanes == 0 && source.row_begin % kLanes == 0;
}

PackedScales fp8_scales(const MatrixSource& source) {
  if (source.stored.scale_type == DType::kF8E8M0) return PackedScales::kE8M0;
  return has_tile_scales(source) ? PackedScales::kTileF32 : PackedScales::kF32;
}

void choose_ggml_scales(GgmlType type, PackLayout& layout) {
  const GgmlBlock& block = *find_ggml_block(static_cast<uint32_t>(type));
  layout.piece_columns = block.columns;
  layout.has_block_grid = true;
  layout.has_halves = block.scale_columns == 16;
  switch (type) {
    case GgmlType::kQ4_1:
    case GgmlType::kQ5_1:
      layout.scales = PackedScales::kF16Bias;
      return;
    case GgmlType::kQ2_K:
      layout.scales = PackedScales::kSuperMinHalves;
      return;
    case GgmlType::kQ3_K:
    case GgmlType::kQ6_K:
      layout.scales = PackedScales::kSuperHalves;
      return;
    case GgmlType::kQ4_K:
    case GgmlType::kQ5_K:
      layout.scales = PackedScales::kSuperMin;
      return;
    case GgmlType::kIQ4_XS:
      layout.scales = PackedScales::kSuper;
      return;
    case GgmlType::kMXFP4:
      layout.scales = PackedScales::kE8M0;
      layout.factor = 0.5f;  // kE2M1Table holds twice the values
      return;
    default:
      layout.scales = PackedScales::kF16;
  }
}

void choose_scales(const MatrixSource& source, PackLayout& layout) {
  const StoredMatrix& stored = source.stored;
  layout.piece_columns = stored.group;
  switch (stored.format) {
    case StoredFormat::kAffine:
      layout.scales = scales_of_type(PackedScales::kF32Bias, stored.scale_type);
      return;
    case StoredFormat::kFp8:
      layout.scales = fp8_scales(source);
      layout.factor = stored.factor;
      return;
    case StoredFormat::kFp4:
      layout.factor = stored.factor * 0.5f;  // kE2M1Table holds twice the values
      layout.scales = PackedScales::kE8M0;
      if (stored.scale_type == DType::kF8E4M3) {
        layout.scales = PackedScales::kE4M3Halves;
        layout.piece_columns = 0;  // blocks of a piece share nothing
        layout.has_block_grid = layout.has_halves = true;
      }
      return;
    case StoredFormat::kPackedInt:
    case StoredFormat::kGptq:
    case StoredFormat::kAwq:
      layout.scales = scales_of_type(
          stored.zeros.empty() ? PackedScales::kF32 : PackedScales::kF32Zero, stored.scale_type);
      return;
    case StoredFormat::kGguf:
      return choose_ggml_scales(static_cast<GgmlType>(stored.gguf_type), layout);
    case StoredFormat::kPlain:
      break;
  }
  LOCKSTEP_CHECK(false && "plain elements have no scales");
}

}  // namespace

PackLayout choose_pack_layout(const MatrixSource& source) {
  PackLayout layout;
  if (const std::optional<PackedCodes> codes = coded_columns_of(source)) {
    layout.codes = *codes;
    return layout;
  }
  if (must_expand(source)) return layout;
  if (const std::optional<DType> type = plain_element_type(source.stored)) {
    layout.codes = plain_codes(*type);
    return layout;
  }
  with_stored_codes(source.stored, [&layout](const auto& reader, const CodeMeaning& meaning) {
    layout.codes = meaning.is_e4m3            ? PackedCodes::kFp8
                   : meaning.table != nullptr ? PackedCodes::kTable4
                                              : packed_bits(reader.kCodeBits);
    layout.code_offset = meaning.offset;
    layout.table = meaning.table;
  });
  choose_scales(source, layout);
  if (!source.stored.column_map.empty()) {  // a piece has columns of one group
    layout.piece_columns = std::gcd(layout.piece_columns, source.stored.column_group);
  }
  return layout;
}

size_t block_code_bytes(PackedCodes codes) {
  LOCKSTEP_CHECK(!is_by_column(codes));
  constexpr size_t kBitsOf[] = {0, 0, 0, 2, 3, 4, 5, 6, 8, 4, 8};  // in the order of PackedCodes
  static_assert(static_cast<int>(PackedCodes::kBits2) == 3 &&
                static_cast<int>(PackedCodes::kFp8) == 10);
  return kBitsOf[static_cast<size_t>(codes)] * kBlockColumns * kLanes / 8;
}

}  // namespace lockstep

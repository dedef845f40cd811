#include "device/packing/packing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "support/defined_weights.h"
#include "support/packed_reader.h"
#include "support/stored_matrices.h"
#include "tensor/stored_check.h"
#include "tensor/stored_rows.h"

using namespace lockstep;
using namespace lockstep::testing;

namespace {

std::vector<LeafStep> one_leaf(int columns) {
  return {{columns, 0, 1}};
}

// Leaves of `least` to `most` columns.
std::vector<LeafStep> random_leaves(int columns, int least, int most, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<LeafStep> steps;
  while (columns > 0) {
    const auto span = static_cast<uint64_t>(most - least + 1);
    const int leaf = std::min(columns, least + static_cast<int>(random() % span));
    steps.push_back({leaf, 0, 1});
    columns -= leaf;
  }
  return steps;
}

// Blocks cover each leaf, column after column, and pieces hold whole blocks.
bool has_sound_blocks(const PackPlan& plan) {
  size_t piece = 0, block = 0;
  int column = 0;
  for (const LeafStep& step : plan.steps) {
    const int end = column + step.columns;
    for (int i = 0; i < step.pieces; ++i) {
      for (int count = plan.piece_blocks.at(piece++); count > 0; --count) {
        const BlockColumns& columns = plan.blocks.at(block++);
        if (columns.begin != column || columns.count < 1 || columns.count > kBlockColumns) {
          return false;
        }
        column += columns.count;
      }
    }
    if (column != end) return false;
  }
  return piece == plan.piece_blocks.size() && block == plan.blocks.size() &&
         block == static_cast<size_t>(plan.matrix.block_count);
}

struct Packed {
  PackPlan plan;
  std::vector<std::byte> tiles;
};

Packed pack(const MatrixSource& source) {
  Result<PackPlan> plan = plan_packing(source, false);
  if (!plan.ok()) FAIL(plan.error().message);
  Packed packed{std::move(plan.value())};
  // Garbage, so that bytes that are not written are noticed.
  packed.tiles.assign(packed.plan.bytes(), std::byte{0xa5});
  const int tiles = tile_count(packed.plan.matrix.rows);
  pack_tiles(source, packed.plan, tiles / 2, tiles, packed.tiles.data());
  pack_tiles(source, packed.plan, 0, tiles / 2, packed.tiles.data());
  return packed;
}

// Every weight has the format's value: exact, or rounded once where it is used as a float.
void check_weights(const MatrixSource& source, const Packed& packed) {
  const PackedMatrix& matrix = packed.plan.matrix;
  const bool is_rounded = matrix.codes == PackedCodes::kF32 || has_coded_columns(matrix.codes);
  CHECK(matrix.tile_bytes % 64 == 0);
  CHECK(matrix.scales_at % 64 == 0);
  CHECK(matrix.step_count == static_cast<int32_t>(source.steps.size()));
  if (!is_by_column(matrix.codes)) CHECK(has_sound_blocks(packed.plan));
  const std::vector<double> weights = read_packed(packed.plan, packed.tiles.data());
  size_t at = 0;
  for (int row = 0; row < matrix.rows; ++row) {
    for (int column = 0; column < matrix.columns; ++column, ++at) {
      double expected =
          source.is_transposed
              ? defined_weight(source.stored, source.row_begin + column, source.column_begin + row)
              : defined_weight(source.stored, source.row_begin + row,
                               source.stored.stored_column(source.column_begin + column));
      if (is_rounded) expected = static_cast<double>(static_cast<float>(expected));
      if (weights[at] != expected) {
        CAPTURE(row);
        CAPTURE(column);
        REQUIRE(weights[at] == expected);
      }
    }
  }
}

void check_source(const MatrixSource& source) {
  check_weights(source, pack(source));
}

}  // namespace

TEST_CASE("the NaN of an 8-bit float is detected in the packed part, and only there") {
  for (const FormatCase& format : all_format_cases()) {
    const bool has_codes = format.format == StoredFormat::kFp8;
    const bool has_scales = dtype_bytes(format.scale_type) == 1;
    if (format.format == StoredFormat::kGguf || (!has_codes && !has_scales)) continue;
    CAPTURE(format.name);
    const RandomMatrix random(format, 64, 256, 1);
    for (const bool is_scale : {false, true}) {
      if (is_scale ? !has_scales : !has_codes) continue;
      StoredMatrix stored = random.matrix;
      std::span<const std::byte>& part = is_scale ? stored.scales : stored.codes;
      std::vector<std::byte> bytes(part.begin(), part.end());
      const bool is_e8m0 = is_scale && format.scale_type == DType::kF8E8M0;
      bytes[bytes.size() - 1] = std::byte{is_e8m0 ? uint8_t{0xff} : uint8_t{0x7f}};
      part = bytes;
      const auto packs = [&](MatrixSource source) {
        Result<PackPlan> plan = plan_packing(source, false);
        REQUIRE(plan.ok());
        std::vector<std::byte> tiles(plan.value().bytes());
        return pack_tiles(source, plan.value(), 0, tile_count(plan.value().matrix.rows),
                          tiles.data());
      };
      CHECK(!packs({stored, 0, 64, 0, 256, false, one_leaf(256)}));
      CHECK(!packs({stored, 48, 16, 128, 128, false, one_leaf(128)}));
      CHECK(!packs({stored, 48, 16, 128, 128, true, one_leaf(16)}));
      if (stored.row_group != 1 && is_scale) continue;
      CHECK(packs({stored, 0, 48, 0, 256, false, one_leaf(256)}));
      CHECK(packs({stored, 48, 16, 0, 128, true, one_leaf(16)}));
    }
  }
}

TEST_CASE("every format keeps its weights' values") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 48, 512, 1);
    check_source({random.matrix, 0, 48, 0, 512, false, one_leaf(512)});
  }
}

TEST_CASE("rows and columns inside a matrix, in leaves on group borders") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 53, 1024, 2);
    check_source({random.matrix, 16, 37, 256, 512, false, {{128, 0, 1}, {128, 0, 0}, {256, 1, 1}}});
    check_source({random.matrix, 5, 11, 0, 768, false, random_leaves(768, 256, 256, 0)});
  }
}

TEST_CASE("leaves that begin inside groups, also at odd columns") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const RandomMatrix random(format, 19, 512, seed);
      const int begin = static_cast<int>(seed) * 7;
      check_source({random.matrix, 1, 18, begin, 480, false, random_leaves(480, 1, 90, seed + 10)});
      check_source({random.matrix, 0, 3, 16, 480, false, random_leaves(480, 16, 48, seed)});
      check_source(
          {random.matrix, 0, 2, 32, 448, false, std::vector<LeafStep>(28, LeafStep{16, 0, 1})});
    }
  }
}

TEST_CASE("columns that do not fill the last group or block") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    for (const int columns : {1, 31, 33, 250, 301}) {
      const RandomMatrix random(format, 17, columns, 3);
      check_source({random.matrix, 0, 17, 0, columns, false, one_leaf(columns)});
    }
  }
}

TEST_CASE("rows are taken in the order of the map") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 48, 256, 4, true);
    check_source({random.matrix, 0, 48, 0, 256, false, random_leaves(256, 32, 96, 4)});
    check_source({random.matrix, 7, 20, 64, 130, false, one_leaf(130)});
    check_source({random.matrix, 7, 20, 64, 130, true, one_leaf(20)});
  }
}

TEST_CASE("columns are taken in the order of the map") {
  for (const FormatCase& format : all_format_cases()) {
    if (format.format != StoredFormat::kGguf && format.format != StoredFormat::kPlain) continue;
    CAPTURE(format.name);
    const RandomMatrix random(format, 37, 512, 4);
    StoredMatrix matrix = random.matrix;
    for (const int group : {128, 32, 64}) {
      std::vector<int32_t> map(static_cast<size_t>(512 / group));
      std::iota(map.begin(), map.end(), 0);
      std::shuffle(map.begin(), map.end(), std::mt19937_64(static_cast<uint64_t>(group)));
      matrix.column_map = map;
      matrix.column_group = group;
      REQUIRE(check_stored_matrix(matrix).ok());
      check_source({matrix, 0, 37, 0, 512, false, one_leaf(512)});
      check_source({matrix, 2, 20, 64, 300, false, random_leaves(300, 1, 90, 5)});
      std::vector<float> values(300);
      dequantise_row(matrix, 3, 101, values);
      for (int i = 0; i < 300; ++i) {
        const double expected = defined_weight(matrix, 3, matrix.stored_column(101 + i));
        REQUIRE(values[static_cast<size_t>(i)] == static_cast<float>(expected));
      }
    }
  }
}

TEST_CASE("a transposed rectangle has its columns as rows") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 40, 512, 5);
    const MatrixSource source{random.matrix, 8, 30, 33, 70, true, {{20, 0, 1}, {10, 0, 1}}};
    const Packed packed = pack(source);
    CHECK(packed.plan.matrix.rows == 70);
    CHECK(packed.plan.matrix.columns == 30);
    CHECK(is_by_column(packed.plan.matrix.codes));
    check_weights(source, packed);
  }
}

TEST_CASE("a transposed matrix keeps its codes where each tile has one scale in a column") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 40, 512, 5);
    const MatrixSource source{random.matrix, 8, 30, 32, 70, true, {{20, 0, 1}, {10, 0, 1}}};
    const Packed packed = pack(source);
    const StoredFormat stored = random.matrix.format;
    const bool keeps_codes =
        stored == StoredFormat::kAffine ||
        (stored == StoredFormat::kFp8 && random.matrix.scale_type != DType::kF8E8M0);
    CHECK(has_coded_columns(packed.plan.matrix.codes) == keeps_codes);
    check_weights(source, packed);
  }
}

TEST_CASE("a rank without a share of a matrix packs nothing") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 16, 256, 6);
    CHECK(pack({random.matrix, 0, 0, 0, 256, false, one_leaf(256)}).tiles.empty());
    CHECK(pack({random.matrix, 16, 0, 0, 0, false, {}}).tiles.empty());
  }
}

TEST_CASE("a dequantised row is the format's value, rounded once") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 24, 512, 7, true);
    REQUIRE(check_stored_matrix(random.matrix).ok());
    for (const auto& [begin, count] : {std::pair{0, 512}, {3, 200}, {511, 1}, {100, 0}}) {
      std::vector<float> values(static_cast<size_t>(count));
      for (int row = 0; row < 24; row += 5) {
        dequantise_row(random.matrix, row, begin, values);
        for (int i = 0; i < count; ++i) {
          const double expected = defined_weight(random.matrix, row, begin + i);
          REQUIRE(values[static_cast<size_t>(i)] == static_cast<float>(expected));
        }
      }
    }
  }
}

TEST_CASE("a tensor that is one byte too short is refused") {
  for (const FormatCase& format : all_format_cases()) {
    CAPTURE(format.name);
    const RandomMatrix random(format, 20, 256, 8);
    MatrixSource source{random.matrix, 0, 20, 0, 256, false, one_leaf(256)};
    REQUIRE(plan_packing(source, false).ok());
    for (const auto part : {&StoredMatrix::codes, &StoredMatrix::scales, &StoredMatrix::biases,
                            &StoredMatrix::zeros, &StoredMatrix::groups}) {
      const std::span<const std::byte> whole = source.stored.*part;
      if (whole.empty()) continue;
      source.stored.*part = whole.first(whole.size() - 1);
      const Result<PackPlan> plan = plan_packing(source, false);
      REQUIRE(!plan.ok());
      CHECK(plan.error().code == ErrorCode::kCorrupt);
      source.stored.*part = whole;
    }
  }
}

namespace {

ErrorCode code_of_refusal(const StoredMatrix& stored) {
  const Result<PackPlan> plan = plan_packing(
      {stored, 0, stored.rows, 0, stored.columns, false, one_leaf(stored.columns)}, false);
  REQUIRE(!plan.ok());
  return plan.error().code;
}

const FormatCase& format_of(const std::vector<FormatCase>& cases, std::string_view name) {
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const FormatCase& each) { return each.name == name; });
  REQUIRE(found != cases.end());
  return *found;
}

}  // namespace

TEST_CASE("an impossible matrix is refused") {
  const std::vector<FormatCase> cases = all_format_cases();
  const RandomMatrix affine(format_of(cases, "affine 4 F16"), 16, 256, 9, true);
  StoredMatrix broken = affine.matrix;
  broken.group = -1;
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken = affine.matrix;
  broken.bits = 7;
  CHECK(code_of_refusal(broken) == ErrorCode::kUnsupported);
  broken = affine.matrix;
  broken.row_bytes = 5;
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken.row_bytes = ~size_t{0};
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken = affine.matrix;
  broken.scale_type = DType::kI64;
  CHECK(code_of_refusal(broken) == ErrorCode::kUnsupported);
  broken = affine.matrix;
  broken.row_group = 2;
  CHECK(code_of_refusal(broken) == ErrorCode::kUnsupported);
  const std::vector<int32_t> beyond(16, 16), negative(16, -1);
  broken = affine.matrix;
  broken.row_map = beyond;
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken.row_map = negative;
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken.row_map = std::span(beyond).first(3);
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);

  const std::vector<int32_t> few_groups(3);
  broken = affine.matrix;
  broken.groups = std::as_bytes(std::span(few_groups));
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);

  const std::vector<int32_t> swapped = {1, 0}, far = {1, 2};
  broken = affine.matrix;
  broken.column_map = swapped;
  broken.column_group = 128;
  CHECK(code_of_refusal(broken) == ErrorCode::kUnsupported);

  const RandomMatrix gguf(format_of(cases, "Q4_K"), 16, 256, 9);
  broken = gguf.matrix;
  broken.column_map = swapped;
  broken.column_group = 128;
  CHECK(check_stored_matrix(broken).ok());
  broken.column_group = 64;
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken.column_group = 128;
  broken.column_map = far;
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
  broken = gguf.matrix;
  broken.gguf_type = 16;
  CHECK(code_of_refusal(broken) == ErrorCode::kUnsupported);
  const RandomMatrix nvfp4(format_of(cases, "nvfp4"), 16, 256, 9);
  broken = nvfp4.matrix;
  broken.group = 32;
  CHECK(code_of_refusal(broken) == ErrorCode::kUnsupported);

  const RandomMatrix gptq(format_of(cases, "gptq act-order 4 F16"), 16, 256, 9);
  const std::vector<int32_t> groups(256, 4);
  broken = gptq.matrix;
  broken.groups = std::as_bytes(std::span(groups));
  CHECK(code_of_refusal(broken) == ErrorCode::kCorrupt);
}

TEST_CASE("formats get the packed form that holds their values") {
  const std::vector<FormatCase> cases = all_format_cases();
  struct Expected {
    const char* name;
    PackedCodes codes;
    PackedScales scales;
    int offset;
    bool has_integer_input;
  };
  const Expected expected[] = {
      {"plain BF16", PackedCodes::kBF16, PackedScales::kNone, 0, false},
      {"affine 4 BF16", PackedCodes::kBits4, PackedScales::kBF16Bias, 0, true},
      {"fp8 blocks BF16", PackedCodes::kFp8, PackedScales::kTileF32, 0, false},
      {"fp8 small blocks F32", PackedCodes::kFp8, PackedScales::kF32, 0, false},
      {"fp8 tensor F32", PackedCodes::kFp8, PackedScales::kTileF32, 0, false},
      {"mxfp8", PackedCodes::kFp8, PackedScales::kE8M0, 0, false},
      {"mxfp4", PackedCodes::kTable4, PackedScales::kE8M0, 12, true},
      {"nvfp4", PackedCodes::kTable4, PackedScales::kE4M3Halves, 12, true},
      {"packed 4 BF16", PackedCodes::kBits4, PackedScales::kBF16, 8, true},
      {"packed zeros 8 F32", PackedCodes::kBits8, PackedScales::kF32Zero, 0, true},
      {"gptq 4 F16", PackedCodes::kBits4, PackedScales::kF16Zero, 0, true},
      {"gptq act-order 4 F16", PackedCodes::kF32, PackedScales::kNone, 0, false},
      {"awq F16", PackedCodes::kBits4, PackedScales::kF16Zero, 0, true},
      {"Q4_0", PackedCodes::kBits4, PackedScales::kF16, 8, true},
      {"Q5_1", PackedCodes::kBits5, PackedScales::kF16Bias, 0, true},
      {"Q8_0", PackedCodes::kBits8, PackedScales::kF16, 128, true},
      {"Q2_K", PackedCodes::kBits2, PackedScales::kSuperMinHalves, 0, true},
      {"Q3_K", PackedCodes::kBits3, PackedScales::kSuperHalves, 4, true},
      {"Q4_K", PackedCodes::kBits4, PackedScales::kSuperMin, 0, true},
      {"Q6_K", PackedCodes::kBits6, PackedScales::kSuperHalves, 32, true},
      {"IQ4_XS", PackedCodes::kTable4, PackedScales::kSuper, 128, true},
      {"MXFP4", PackedCodes::kTable4, PackedScales::kE8M0, 12, true},
  };
  for (const Expected& each : expected) {
    CAPTURE(each.name);
    const RandomMatrix random(format_of(cases, each.name), 32, 256, 10);
    const MatrixSource source{random.matrix, 0, 32, 0, 256, false, one_leaf(256)};
    const PackedMatrix matrix = pack(source).plan.matrix;
    CHECK(matrix.codes == each.codes);
    CHECK(matrix.scales == each.scales);
    CHECK(matrix.code_offset == each.offset);
    CHECK(matrix.has_integer_input == each.has_integer_input);
    const Result<PackPlan> exact = plan_packing(source, true);
    REQUIRE(exact.ok());
    CHECK(!exact.value().matrix.has_integer_input);
  }
}

TEST_CASE("columns that share scales form one piece") {
  const std::vector<FormatCase> cases = all_format_cases();
  const auto pieces_of = [&](std::string_view name) {
    const RandomMatrix random(format_of(cases, name), 16, 512, 11);
    return pack({random.matrix, 0, 16, 0, 512, false, one_leaf(512)}).plan.piece_blocks;
  };
  CHECK(pieces_of("fp8 tensor F32") == std::vector<uint16_t>{16});
  CHECK(pieces_of("affine 4 F16") == std::vector<uint16_t>(4, 4));
  CHECK(pieces_of("Q6_K") == std::vector<uint16_t>(2, 8));
  CHECK(pieces_of("Q4_0") == std::vector<uint16_t>(16, 1));
  CHECK(pieces_of("nvfp4") == std::vector<uint16_t>{16});
}

TEST_CASE("GPTQ whose groups are in order is packed, and a zero point of 256 is expanded") {
  const std::vector<FormatCase> cases = all_format_cases();
  const RandomMatrix random(format_of(cases, "gptq 8 F16"), 16, 128, 12);
  MatrixSource source{random.matrix, 0, 16, 0, 128, false, one_leaf(128)};
  std::vector<int32_t> groups;
  for (int column = 0; column < 128; ++column) groups.push_back(column / 64);
  source.stored.groups = std::as_bytes(std::span(groups));
  Packed packed = pack(source);
  CHECK(packed.plan.matrix.codes == PackedCodes::kBits8);
  check_weights(source, packed);

  std::vector<std::byte> zeros(source.stored.zeros.begin(), source.stored.zeros.end());
  zeros[3] = std::byte{255};
  source.stored.zeros = zeros;
  packed = pack(source);
  CHECK(packed.plan.matrix.codes == PackedCodes::kF32);
  check_weights(source, packed);
}

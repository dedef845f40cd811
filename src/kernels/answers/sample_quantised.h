// Random quantised matrices, packed as kernels/packed_matrix.h specifies by a packer that shares no
// code with the one of models (device/packing), with every weight in double precision. For the
// fixed answers and the kernel tests; values, any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/answers/sample_data.h"

namespace lockstep {

struct QuantisedFormat {
  PackedCodes codes;
  PackedScales scales;
  bool has_integer_input;
  int code_offset;
};

// A weight is scale * code + bias, where code_offset is subtracted from `code` already.
struct QuantisedWeight {
  double scale;
  double code;
  double bias;

  double value() const { return scale * code + bias; }
  double magnitude() const { return std::fabs(scale * code) + std::fabs(bias); }
};

inline constexpr QuantisedFormat kQuantisedFormats[] = {
    {PackedCodes::kBits2, PackedScales::kF16, true, 2},
    {PackedCodes::kBits2, PackedScales::kBF16Bias, true, 0},
    {PackedCodes::kBits2, PackedScales::kSuperMinHalves, true, 0},
    {PackedCodes::kBits2, PackedScales::kSuperMinHalves, false, 0},
    {PackedCodes::kBits2, PackedScales::kF16Zero, false, 0},
    {PackedCodes::kBits3, PackedScales::kF16Bias, true, 0},
    {PackedCodes::kBits3, PackedScales::kSuperHalves, true, 4},
    {PackedCodes::kBits3, PackedScales::kSuperHalves, false, 4},
    {PackedCodes::kBits4, PackedScales::kF32, true, 8},
    {PackedCodes::kBits4, PackedScales::kF16, true, 8},
    {PackedCodes::kBits4, PackedScales::kBF16, true, 8},
    {PackedCodes::kBits4, PackedScales::kF32Bias, true, 0},
    {PackedCodes::kBits4, PackedScales::kF16Bias, true, 0},
    {PackedCodes::kBits4, PackedScales::kBF16Bias, true, 0},
    {PackedCodes::kBits4, PackedScales::kF32Zero, true, 0},
    {PackedCodes::kBits4, PackedScales::kF16Zero, true, 0},
    {PackedCodes::kBits4, PackedScales::kBF16Zero, true, 0},
    {PackedCodes::kBits4, PackedScales::kSuperMin, true, 0},
    {PackedCodes::kBits4, PackedScales::kSuperMin, false, 0},
    {PackedCodes::kBits4, PackedScales::kF16, false, 8},
    {PackedCodes::kBits4, PackedScales::kBF16Bias, false, 0},
    {PackedCodes::kBits4, PackedScales::kBF16Zero, false, 0},
    {PackedCodes::kBits5, PackedScales::kF16, true, 16},
    {PackedCodes::kBits5, PackedScales::kF16Bias, true, 0},
    {PackedCodes::kBits5, PackedScales::kSuperMin, true, 0},
    {PackedCodes::kBits5, PackedScales::kSuperMin, false, 0},
    {PackedCodes::kBits6, PackedScales::kBF16Bias, true, 0},
    {PackedCodes::kBits6, PackedScales::kSuperHalves, true, 32},
    {PackedCodes::kBits6, PackedScales::kSuperHalves, false, 32},
    {PackedCodes::kBits8, PackedScales::kF16, true, 128},
    {PackedCodes::kBits8, PackedScales::kF32, true, 128},
    {PackedCodes::kBits8, PackedScales::kBF16Bias, true, 0},
    {PackedCodes::kBits8, PackedScales::kF16Bias, true, 0},
    {PackedCodes::kBits8, PackedScales::kF16Zero, true, 0},
    {PackedCodes::kBits8, PackedScales::kF16, false, 128},
    {PackedCodes::kTable4, PackedScales::kE8M0, true, 128},
    {PackedCodes::kTable4, PackedScales::kE8M0, false, 128},
    {PackedCodes::kTable4, PackedScales::kE4M3Halves, true, 12},
    {PackedCodes::kTable4, PackedScales::kE4M3Halves, false, 12},
    {PackedCodes::kTable4, PackedScales::kF16, true, 127},
    {PackedCodes::kTable4, PackedScales::kSuper, true, 128},
    {PackedCodes::kTable4, PackedScales::kSuper, false, 128},
    {PackedCodes::kFp8, PackedScales::kTileF32, false, 0},
    {PackedCodes::kFp8, PackedScales::kF32, false, 0},
    {PackedCodes::kFp8, PackedScales::kE8M0, false, 0},
};

inline int stored_bits(PackedCodes codes) {
  switch (codes) {
    case PackedCodes::kBits2:
      return 2;
    case PackedCodes::kBits3:
      return 3;
    case PackedCodes::kBits5:
      return 5;
    case PackedCodes::kBits6:
      return 6;
    case PackedCodes::kBits4:
    case PackedCodes::kTable4:
      return 4;
    default:
      return 8;
  }
}

class QuantisedMatrix {
 public:
  // Each leaf of `steps` is divided into pieces of 1 to 80 columns.
  QuantisedMatrix(SampleRandom& random, QuantisedFormat format, int rows,
                  std::vector<LeafStep> steps)
      : format_(format), rows_(rows), steps_(std::move(steps)) {
    for (int i = 0; i < 16; ++i) table_.push_back(static_cast<uint8_t>(random.below(256)));
    for (LeafStep& step : steps_) cut_leaf(random, step);
    const size_t tiles = static_cast<size_t>((rows + kLanes - 1) / kLanes);
    for (size_t tile = 0; tile < tiles; ++tile) pack_tile(random, tile);
    tile_bytes_ = bytes_.size() / tiles;
    group_tiles(tiles);
  }

  PackedMatrix view() const {
    return {.codes = format_.codes,
            .scales = format_.scales,
            .has_integer_input = format_.has_integer_input,
            .rows = rows_,
            .columns = columns_,
            .code_offset = format_.code_offset,
            .factor = kFactor,
            .table = table_.data(),
            .tiles = bytes_.data(),
            .tile_bytes = tile_bytes_,
            .scales_at = blocks_.size() * block_bytes(),
            .piece_blocks = piece_blocks_.data(),
            .block_count = static_cast<int32_t>(blocks_.size()),
            .steps = steps_.data(),
            .step_count = static_cast<int32_t>(steps_.size())};
  }

  const std::vector<BlockColumns>& blocks() const { return blocks_; }
  const std::vector<LeafStep>& steps() const { return steps_; }
  const QuantisedFormat& format() const { return format_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  const QuantisedWeight& at(int row, int column) const {
    return weights_[static_cast<size_t>(row) * static_cast<size_t>(columns_) +
                    static_cast<size_t>(column)];
  }

 private:
  static constexpr float kFactor = 0.37f;
  struct Scales {
    double scale[2] = {};
    double bias[2] = {};
  };

  size_t block_bytes() const { return static_cast<size_t>(64 * stored_bits(format_.codes)); }

  void cut_leaf(SampleRandom& random, LeafStep& step) {
    for (int left = step.columns; left > 0; ++step.pieces) {
      const int piece = std::min(left, 1 + random.below(80));
      left -= piece;
      piece_blocks_.push_back(static_cast<uint16_t>((piece + kBlockColumns - 1) / kBlockColumns));
      for (int done = 0; done < piece; done += kBlockColumns) {
        const int count = std::min(piece - done, kBlockColumns);
        blocks_.push_back({columns_, count});
        columns_ += count;
      }
    }
  }

  template <class Value>
  void append(Value value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(value));
  }

  double append_real(SampleRandom& random, PackedScales type) {
    if (type == PackedScales::kF16) {
      const auto bits = static_cast<uint16_t>(random.bits() & 0xbbff);  // below 2, also subnormal
      append(bits);
      return half_value(bits);
    }
    const auto bits = std::bit_cast<uint32_t>(random.unit());
    if (type == PackedScales::kF32) {
      append(bits);
      return std::bit_cast<float>(bits);
    }
    append(static_cast<uint16_t>(bits >> 16));
    return std::bit_cast<float>(bits & 0xffff0000u);
  }
  double append_byte(SampleRandom& random) {
    const auto byte = static_cast<uint8_t>(random.below(256));
    append(byte);
    return byte;
  }
  double append_signed(SampleRandom& random) {
    const auto byte = static_cast<int8_t>(random.below(256) - 128);
    append(byte);
    return byte;
  }

  // For sixteen rows: the arrays of a head, concatenated.
  void append_arrays(SampleRandom& random, PackedScales type, bool has_bias, bool has_zero,
                     std::vector<Scales>& rows) {
    for (Scales& row : rows) row.scale[0] = row.scale[1] = append_real(random, type);
    for (Scales& row : rows) {
      if (has_bias) row.bias[0] = row.bias[1] = append_real(random, type);
      if (has_zero) row.bias[0] = row.bias[1] = -row.scale[0] * append_byte(random);
    }
  }

  // The factors of a super-block are kept in `rows`; append_block makes scales of them.
  void append_head(SampleRandom& random, std::vector<Scales>& rows) {
    using S = PackedScales;
    const S scales = format_.scales;
    const bool has_bias = scales == S::kF32Bias || scales == S::kF16Bias || scales == S::kBF16Bias;
    const bool has_zero = scales == S::kF32Zero || scales == S::kF16Zero || scales == S::kBF16Zero;
    if (scales == S::kE8M0) {
      for (Scales& row : rows) {
        const int exponent = random.below(8) == 0 ? 0 : 120 + random.below(10);
        append(static_cast<uint8_t>(exponent));
        row.scale[0] = double{kFactor} * std::ldexp(1.0, exponent - 127);
      }
    } else if (scales == S::kTileF32) {
      const double scale = append_real(random, S::kF32);
      for (Scales& row : rows) row.scale[0] = scale;
    } else if (scales == S::kF32 || scales == S::kF32Bias || scales == S::kF32Zero) {
      append_arrays(random, S::kF32, has_bias, has_zero, rows);
    } else if (scales == S::kBF16 || scales == S::kBF16Bias || scales == S::kBF16Zero) {
      append_arrays(random, S::kBF16, has_bias, has_zero, rows);
    } else if (scales != S::kE4M3Halves) {
      const bool has_min = scales == S::kSuperMin || scales == S::kSuperMinHalves;
      append_arrays(random, S::kF16, has_bias || has_min, has_zero, rows);
    }
    if (scales == S::kE8M0 || scales == S::kTileF32) {
      for (Scales& row : rows) row.scale[1] = row.scale[0];
    }
  }

  // The scales of one block, whose head is `heads`.
  std::vector<Scales> append_block(SampleRandom& random, const std::vector<Scales>& heads) {
    using S = PackedScales;
    std::vector<Scales> rows = heads;
    const S scales = format_.scales;
    const bool has_min = scales == S::kSuperMin || scales == S::kSuperMinHalves;
    const bool is_super = has_min || scales == S::kSuper || scales == S::kSuperHalves;
    const bool is_halved =
        scales == S::kE4M3Halves || scales == S::kSuperHalves || scales == S::kSuperMinHalves;
    if (!is_super && !is_halved) return rows;
    for (int half = 0; half < (is_halved ? 2 : 1); ++half) {
      for (size_t i = 0; i < rows.size(); ++i) {
        if (is_super) {
          const double s = has_min ? append_byte(random) : append_signed(random);
          rows[i].scale[half] = heads[i].scale[0] * s;
        } else {
          const int bits = random.below(0x7f) | (random.below(2) << 7);
          append(static_cast<uint8_t>(bits));
          rows[i].scale[half] = static_cast<double>(kFactor) * fp8_value(bits);
        }
      }
    }
    for (int half = 0; has_min && half < (is_halved ? 2 : 1); ++half) {
      for (size_t i = 0; i < rows.size(); ++i) {
        rows[i].bias[half] = -heads[i].bias[0] * append_byte(random);
      }
    }
    if (!is_halved) {
      for (Scales& row : rows) {
        row.scale[1] = row.scale[0];
        row.bias[1] = row.bias[0];
      }
    }
    return rows;
  }

  // Sets `bits` bits of quad `column / 4` in the vectors at `from`.
  void put_bits(size_t from, int bits, int lane, int column, int value) {
    const int quad = column / 4;
    const int quads_per_vector = 8 / bits;
    const int byte = 64 * (quad / quads_per_vector) + 4 * lane + column % 4;
    bytes_[from + static_cast<size_t>(byte)] |=
        static_cast<std::byte>(value << (bits * (quad % quads_per_vector)));
  }

  void put_code(size_t from, int lane, int column, int code) {
    const int bits = stored_bits(format_.codes);
    const int low = bits == 3 ? 2 : bits == 5 || bits == 6 ? 4 : bits;
    put_bits(from, low, lane, column, code & ((1 << low) - 1));
    if (low < bits) {
      put_bits(from + static_cast<size_t>(64 * low), bits - low, lane, column, code >> low);
    }
  }

  double draw_code(SampleRandom& random, size_t block_at, int lane, int column) {
    const int largest = (1 << stored_bits(format_.codes)) - 1;
    int code = random.below(largest + 1);
    if (format_.codes == PackedCodes::kFp8 && (code & 0x7f) == 0x7f) --code;
    if (random.below(4) == 0) code = format_.codes == PackedCodes::kFp8 ? code & 0x87 : largest;
    put_code(block_at, lane, column, code);
    if (format_.codes == PackedCodes::kFp8) return fp8_value(code);
    if (format_.codes == PackedCodes::kTable4) code = table_[static_cast<size_t>(code)];
    return code - format_.code_offset;
  }

  void pack_tile(SampleRandom& random, size_t tile) {
    const size_t begin = bytes_.size();
    bytes_.resize(begin + blocks_.size() * block_bytes());
    const size_t row_begin = tile * kLanes;
    weights_.resize((row_begin + kLanes) * static_cast<size_t>(columns_));
    size_t block = 0;
    for (const uint16_t block_count : piece_blocks_) {
      std::vector<Scales> heads(kLanes);
      const size_t head_at = bytes_.size();
      append_head(random, heads);
      head_bytes_ = bytes_.size() - head_at;
      for (int i = 0; i < block_count; ++i, ++block) {
        const size_t block_at = bytes_.size();
        const std::vector<Scales> scales = append_block(random, heads);
        block_scale_bytes_ = bytes_.size() - block_at;
        for (int lane = 0; lane < kLanes; ++lane) {
          for (int column = 0; column < blocks_[block].count; ++column) {
            const Scales& of = scales[static_cast<size_t>(lane)];
            const int half = column / kLanes;
            weights_[(row_begin + static_cast<size_t>(lane)) * static_cast<size_t>(columns_) +
                     static_cast<size_t>(blocks_[block].begin + column)] = {
                of.scale[half], draw_code(random, begin + block * block_bytes(), lane, column),
                of.bias[half]};
          }
        }
      }
    }
  }

  // Puts the tiles, which are one after the other, into groups: block by block, then piece by
  // piece.
  void group_tiles(size_t tiles) {
    const std::vector<std::byte> ungrouped = std::exchange(bytes_, {});
    for (size_t first = 0; first < tiles; first += kGroupTiles) {
      const size_t count = std::min<size_t>(kGroupTiles, tiles - first);
      size_t done = 0;  // bytes of each tile
      const auto append_part = [&](size_t bytes) {
        for (size_t tile = first; tile < first + count; ++tile) {
          const auto from =
              ungrouped.begin() + static_cast<std::ptrdiff_t>(tile * tile_bytes_ + done);
          bytes_.insert(bytes_.end(), from, from + static_cast<std::ptrdiff_t>(bytes));
        }
        done += bytes;
      };
      for (size_t block = 0; block < blocks_.size(); ++block) append_part(block_bytes());
      for (const uint16_t blocks : piece_blocks_) {
        append_part(head_bytes_);
        for (int block = 0; block < blocks; ++block) append_part(block_scale_bytes_);
      }
    }
  }

  QuantisedFormat format_;
  int rows_;
  int columns_ = 0;
  std::vector<LeafStep> steps_;
  std::vector<uint8_t> table_;
  std::vector<uint16_t> piece_blocks_;
  std::vector<BlockColumns> blocks_;
  std::vector<std::byte> bytes_;
  size_t tile_bytes_ = 0;
  size_t head_bytes_ = 0, block_scale_bytes_ = 0;  // of a tile's part of a piece
  std::vector<QuantisedWeight> weights_;           // (rows of whole tiles, columns)
};

// The input of a quantised matrix as `table` prepares it.
struct PreparedInput {
  std::vector<InputBlock8> integers;
  std::vector<InputBlockF> floats;
  size_t stride;  // bytes

  const void* token(int token) const {
    const void* first = integers.empty() ? static_cast<const void*>(floats.data())
                                         : static_cast<const void*>(integers.data());
    return static_cast<const std::byte*>(first) + static_cast<size_t>(token) * stride;
  }
};

inline PreparedInput prepare_input(const KernelTable& table, const QuantisedMatrix& matrix,
                                   const std::vector<float>& input, int tokens) {
  const size_t blocks = matrix.blocks().size();
  PreparedInput prepared;
  PrepareArgs args = {.input = input.data(),
                      .input_stride = static_cast<size_t>(matrix.columns()),
                      .blocks = matrix.blocks().data(),
                      .block_count = static_cast<int32_t>(blocks),
                      .token_begin = 0,
                      .token_end = tokens};
  if (matrix.format().has_integer_input) {
    prepared.integers.resize(blocks * static_cast<size_t>(tokens));
    prepared.stride = blocks * sizeof(InputBlock8);
    args.output = prepared.integers.data();
    table.prepare_integers(args);
  } else {
    prepared.floats.resize(blocks * static_cast<size_t>(tokens));
    prepared.stride = blocks * sizeof(InputBlockF);
    args.output = prepared.floats.data();
    table.prepare_floats(args);
  }
  return prepared;
}

}  // namespace lockstep

#include "device/packing/pack_codes.h"

#include <cstring>
#include <type_traits>

#include "tensor/stored_codes.h"

namespace lockstep {
namespace {

constexpr int kQuads = kBlockColumns / 4;
constexpr int kQuarters = kLanes / 4;

// Four rows of one quad: the codes of one row's quad are one word.
using Words4 = uint32_t __attribute__((vector_size(16)));

// A block's codes, by (quad, row / 4).
struct QuadCodes {
  Words4 words[kQuads][kQuarters];
};

// One byte per code, by row.
struct alignas(64) BlockCodes {
  uint8_t rows[kLanes][kBlockColumns] = {};
};

Words4 load_words4(const uint8_t* from) {
  Words4 words;
  std::memcpy(&words, from, sizeof words);
  return words;
}

void interleave(const BlockCodes& codes, QuadCodes& quads) {
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    for (int quad = 0; quad < kQuads; quad += 4) {
      const auto load = [&](int row) {
        return load_words4(codes.rows[quarter * 4 + row] + quad * 4);
      };
      const Words4 a = load(0), b = load(1), c = load(2), d = load(3);
      const Words4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Words4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Words4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Words4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      quads.words[quad][quarter] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
      quads.words[quad + 1][quarter] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
      quads.words[quad + 2][quarter] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
      quads.words[quad + 3][quarter] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
  }
}

// Writes bits [shift, shift + kBits) of all codes; returns the beginning of the next plane.
template <int kBits>
std::byte* put_plane(const QuadCodes& quads, int shift, std::byte* out) {
  constexpr int kPerByte = 8 / kBits;
  constexpr uint32_t kMask = 0x01010101u * ((1u << kBits) - 1);
  for (int quad = 0; quad < kQuads; quad += kPerByte) {
    for (int quarter = 0; quarter < kQuarters; ++quarter) {
      Words4 bytes = quads.words[quad][quarter] >> shift & kMask;
      for (int i = 1; i < kPerByte; ++i) {
        bytes |= (quads.words[quad + i][quarter] >> shift & kMask) << (i * kBits);
      }
      std::memcpy(out, &bytes, sizeof bytes);
      out += sizeof bytes;
    }
  }
  return out;
}

template <int kBits>
std::byte* put_block(const QuadCodes& quads, std::byte* out) {
  if constexpr (kBits == 3) return put_plane<1>(quads, 2, put_plane<2>(quads, 0, out));
  if constexpr (kBits == 5) return put_plane<1>(quads, 4, put_plane<4>(quads, 0, out));
  if constexpr (kBits == 6) return put_plane<2>(quads, 4, put_plane<4>(quads, 0, out));
  if constexpr (kBits == 8 || kBits == 4 || kBits == 2) return put_plane<kBits>(quads, 0, out);
}

// Whether these are the sixteen rows of two words of AWQ.
bool are_two_words(std::span<const int> stored_rows) {
  if (stored_rows.size() != kLanes || stored_rows[0] % 8 != 0) return false;
  for (size_t lane = 1; lane < kLanes; ++lane) {
    if (stored_rows[lane] != stored_rows[lane - 1] + 1) return false;
  }
  return true;
}

// In an AWQ column the rows are adjacent, so a column is read at once. Its bytes are the low
// nibbles of two words, which are rows 0 4 1 5 8 12 9 13, and then the high ones: 2 6 3 7 10 14 11
// 15.
Bytes16 read_awq_column(const std::byte* words) {
  uint64_t nibbles;
  std::memcpy(&nibbles, words, sizeof nibbles);
  constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0f;
  return bytes_of_words(nibbles & kLow, nibbles >> 4 & kLow);
}

void read_awq_block(const AwqCodes& reader, int stored_row, int column, QuadCodes& quads) {
  const std::byte* from = reader.word(stored_row, column);
  const size_t step = reader.column_bytes();
  for (int quad = 0; quad < kQuads; ++quad, from += 4 * step) {
    const Bytes16 a = read_awq_column(from), b = read_awq_column(from + step);
    const Bytes16 c = read_awq_column(from + 2 * step), d = read_awq_column(from + 3 * step);
    // First interleaves the bytes of two columns, then those of two pairs of columns.
    const auto first = [](Bytes16 x, Bytes16 y) {
      return reinterpret_cast<Words4>(__builtin_shufflevector(
          reinterpret_cast<Words8>(x), reinterpret_cast<Words8>(y), 0, 8, 1, 9, 2, 10, 3, 11));
    };
    const auto second = [](Bytes16 x, Bytes16 y) {
      return reinterpret_cast<Words4>(__builtin_shufflevector(
          reinterpret_cast<Words8>(x), reinterpret_cast<Words8>(y), 4, 12, 5, 13, 6, 14, 7, 15));
    };
    const Bytes16 ab_low = interleave_low(a, b), cd_low = interleave_low(c, d);
    const Bytes16 ab_high = interleave_high(a, b), cd_high = interleave_high(c, d);
    const Words4 rows_0415 = first(ab_low, cd_low), rows_8_12 = second(ab_low, cd_low);
    const Words4 rows_2637 = first(ab_high, cd_high), rows_10_14 = second(ab_high, cd_high);
    Words4* out = quads.words[quad];
    out[0] = __builtin_shufflevector(rows_0415, rows_2637, 0, 2, 4, 6);
    out[1] = __builtin_shufflevector(rows_0415, rows_2637, 1, 3, 5, 7);
    out[2] = __builtin_shufflevector(rows_8_12, rows_10_14, 0, 2, 4, 6);
    out[3] = __builtin_shufflevector(rows_8_12, rows_10_14, 1, 3, 5, 7);
  }
}

// The codes of `count` columns of a tile's rows. `codes` is 0 for missing rows.
template <class Reader>
void read_block(const Reader& reader, std::span<const int> stored_rows, int column, int count,
                BlockCodes& codes, QuadCodes& quads) {
  if (Reader::is_whole_run(column, count)) {
    for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
      reader.read_run(stored_rows[lane], column, codes.rows[lane]);
    }
  } else {
    codes = {};
    for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
      reader.read_part(stored_rows[lane], column, count, codes.rows[lane]);
    }
  }
  interleave(codes, quads);
}

template <class Reader>
void pack_blocks(const Reader& reader, const MatrixSource& source, const PackPlan& plan,
                 std::span<const int> stored_rows, std::byte* out) {
  const bool has_word_rows = std::is_same_v<Reader, AwqCodes> && are_two_words(stored_rows);
  BlockCodes codes;
  QuadCodes quads;
  for (const BlockColumns& block : plan.blocks) {
    const int column = source.stored.stored_column(source.column_begin + block.begin);
    if (has_word_rows && block.count == kBlockColumns) {
      if constexpr (std::is_same_v<Reader, AwqCodes>) {
        read_awq_block(reader, stored_rows[0], column, quads);
      }
    } else {
      read_block(reader, stored_rows, column, block.count, codes, quads);
    }
    out = put_block<Reader::kCodeBits>(quads, out);
  }
}

}  // namespace

void pack_codes(const MatrixSource& source, const PackPlan& plan, std::span<const int> stored_rows,
                std::byte* packed) {
  with_stored_codes(source.stored, [&](const auto& reader, const CodeMeaning&) {
    pack_blocks(reader, source, plan, stored_rows, packed);
  });
}

}  // namespace lockstep

// The codes of quantised matrices, read from each stored format as one byte per column. Used to lay
// out matrices for kernels (device/) and to read single rows (stored_rows). Everything here relies
// on a successful check_stored_matrix() (tensor/stored_check.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/ggml_blocks.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

// Codes are read in runs of at most this many columns.
inline constexpr int kRunColumns = 32;

// The value of a code: (table ? table[code] : code) - offset.
struct CodeMeaning {
  int offset = 0;
  const uint8_t* table = nullptr;  // 16 bytes
  bool is_e4m3 = false;            // then the code is a float and the offset 0
};

// Twice the value of an E2M1 number, plus 12.
inline constexpr uint8_t kE2M1Table[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                           12, 11, 10, 9,  8,  6,  4,  0};
inline constexpr int kE2M1Offset = 12;
// For IQ4_NL and IQ4_XS, plus 128.
inline constexpr uint8_t kIq4Table[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                          129, 141, 153, 166, 181, 197, 217, 241};
inline constexpr int kIq4Offset = 128;

// Sixteen bytes in one register of any processor.
using Bytes16 = uint8_t __attribute__((vector_size(16)));
using Words8 = uint16_t __attribute__((vector_size(16)));

inline Bytes16 load_bytes16(const std::byte* from) {
  Bytes16 bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}
inline void store_bytes16(Bytes16 bytes, uint8_t* to) {
  std::memcpy(to, &bytes, sizeof bytes);
}
// Bits [shift, shift + bits of mask) of each byte; those bits must lie inside the byte.
inline Bytes16 byte_bits(Bytes16 bytes, int shift, uint8_t mask) {
  return reinterpret_cast<Bytes16>(reinterpret_cast<Words8>(bytes) >> shift) & (Bytes16{} + mask);
}
inline Bytes16 shift_left(Bytes16 bytes, int shift) {  // no bit may leave its byte
  return reinterpret_cast<Bytes16>(reinterpret_cast<Words8>(bytes) << shift);
}

inline Bytes16 bytes_of_words(uint64_t first, uint64_t second) {
  using Pair = uint64_t __attribute__((vector_size(16)));
  const Pair pair = {first, second};
  return reinterpret_cast<Bytes16>(pair);
}
// Alternates the bytes of a and b, from the first or the last eight of each.
inline Bytes16 interleave_low(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Bytes16 interleave_high(Bytes16 a, Bytes16 b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                 31);
}

// Eight codes of kBits, the lowest bits first, to eight bytes.
template <int kBits>
inline uint64_t spread_codes(uint64_t word) {
  constexpr uint64_t kOne = 1;
  constexpr uint64_t kFour = (kOne << (4 * kBits)) - 1;
  constexpr uint64_t kTwo = ((kOne << (2 * kBits)) - 1) * 0x0000'0001'0000'0001;
  constexpr uint64_t kEach = ((kOne << kBits) - 1) * 0x0001'0001'0001'0001;
  word = (word & kFour) | (word >> (4 * kBits) & kFour) << 32;
  word = (word & kTwo) | (word >> (2 * kBits) & kTwo) << 16;
  return (word & kEach) | (word >> kBits & kEach) << 8;
}

// A row is one stream of codes, starting with the lowest bits of its bytes: kAffine, kFp8, kFp4,
// kPackedInt.
template <int kBits>
class StreamCodes {
 public:
  explicit StreamCodes(const StoredMatrix& matrix)
      : codes_(matrix.codes.data()), row_bytes_(matrix.row_bytes) {}

  static constexpr int kCodeBits = kBits;
  static bool is_whole_run(int column, int count) {
    return count == kRunColumns && (kBits == 8 || column % 8 == 0);
  }
  void read_run(int stored_row, int column, uint8_t* out) const {
    const std::byte* from = row(stored_row) + static_cast<size_t>(column) * kBits / 8;
    if constexpr (kBits == 8) {
      std::memcpy(out, from, kRunColumns);
    } else if constexpr (kBits == 4) {
      const Bytes16 bytes = load_bytes16(from);
      const Bytes16 low = byte_bits(bytes, 0, 15), high = byte_bits(bytes, 4, 15);
      store_bytes16(interleave_low(low, high), out);
      store_bytes16(interleave_high(low, high), out + 16);
    } else if constexpr (kBits == 2) {
      uint64_t codes;
      std::memcpy(&codes, from, 8);
      const Bytes16 bytes = bytes_of_words(codes, 0);
      // Even codes of all bytes, odd codes of all bytes, then in pairs.
      const Bytes16 even = interleave_low(byte_bits(bytes, 0, 3), byte_bits(bytes, 4, 3));
      const Bytes16 odd = interleave_low(byte_bits(bytes, 2, 3), byte_bits(bytes, 6, 3));
      store_bytes16(interleave_low(even, odd), out);
      store_bytes16(interleave_high(even, odd), out + 16);
    } else {
      constexpr int kRunBytes = kRunColumns * kBits / 8;
      const auto eight_codes = [from](int byte) {
        // Eight bytes of the run that contain the codes starting at `byte`.
        const int begin = byte < kRunBytes - 8 ? byte : kRunBytes - 8;
        uint64_t word;
        std::memcpy(&word, from + begin, 8);
        return spread_codes<kBits>(word >> (8 * (byte - begin)));
      };
      for (int half = 0; half < 2; ++half) {
        const int byte = half * 2 * kBits;
        store_bytes16(bytes_of_words(eight_codes(byte), eight_codes(byte + kBits)),
                      out + half * 16);
      }
    }
  }
  void read_part(int stored_row, int column, int count, uint8_t* out) const {
    const std::byte* from = row(stored_row);
    size_t bit = static_cast<size_t>(column) * kBits;
    for (int i = 0; i < count; ++i, bit += kBits) {
      const size_t byte = bit / 8, shift = bit % 8;
      auto value = static_cast<unsigned>(from[byte]);
      if (shift + kBits > 8) value |= static_cast<unsigned>(from[byte + 1]) << 8;
      out[i] = static_cast<uint8_t>(value >> shift & ((1u << kBits) - 1));
    }
  }

 private:
  const std::byte* row(int stored_row) const {
    return codes_ + static_cast<size_t>(stored_row) * row_bytes_;
  }
  const std::byte* codes_;
  size_t row_bytes_;
};

// Words along the columns.
template <int kBits>
class GptqCodes {
 public:
  explicit GptqCodes(const StoredMatrix& matrix)
      : codes_(matrix.codes.data()), rows_(static_cast<size_t>(matrix.rows)) {}

  static constexpr int kCodeBits = kBits;
  static bool is_whole_run(int column, int count) {
    return count == kRunColumns && column % kPerWord == 0;
  }
  void read_run(int stored_row, int column, uint8_t* out) const {
    for (int i = 0; i < kRunColumns; i += kPerWord) {
      const uint64_t codes = spread_codes<kBits>(word(stored_row, column + i));
      std::memcpy(out + i, &codes, kPerWord);
    }
  }
  void read_part(int stored_row, int column, int count, uint8_t* out) const {
    for (int i = 0; i < count; ++i) {
      const int at = column + i;
      out[i] = static_cast<uint8_t>(word(stored_row, at) >> (at % kPerWord * kBits) &
                                    ((1u << kBits) - 1));
    }
  }

 private:
  static constexpr int kPerWord = 32 / kBits;

  uint32_t word(int stored_row, int column) const {
    const size_t index =
        static_cast<size_t>(column / kPerWord) * rows_ + static_cast<size_t>(stored_row);
    uint32_t bits;
    std::memcpy(&bits, codes_ + index * 4, 4);
    return bits;
  }
  const std::byte* codes_;
  size_t rows_;
};

// The nibble of row r of eight in a word of AWQ.
inline constexpr int kAwqNibbles[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// Words along the rows.
class AwqCodes {
 public:
  explicit AwqCodes(const StoredMatrix& matrix)
      : codes_(matrix.codes.data()), column_bytes_(static_cast<size_t>(matrix.rows + 7) / 8 * 4) {}

  static constexpr int kCodeBits = 4;
  static bool is_whole_run(int, int count) { return count == kRunColumns; }
  void read_run(int stored_row, int column, uint8_t* out) const {
    read_part(stored_row, column, kRunColumns, out);
  }
  void read_part(int stored_row, int column, int count, uint8_t* out) const {
    const int nibble = kAwqNibbles[stored_row % 8];
    const std::byte* from = word(stored_row, column) + nibble / 2;
    for (int i = 0; i < count; ++i) {
      out[i] = static_cast<uint8_t>(static_cast<unsigned>(*from) >> (nibble % 2 * 4) & 15);
      from += column_bytes_;
    }
  }
  // The word of the eight rows around `stored_row`; the next column's is column_bytes() later.
  const std::byte* word(int stored_row, int column) const {
    return codes_ + static_cast<size_t>(column) * column_bytes_ +
           static_cast<size_t>(stored_row / 8) * 4;
  }
  size_t column_bytes() const { return column_bytes_; }

 private:
  const std::byte* codes_;
  size_t column_bytes_;
};

// 32 columns, the `index`-th of a ggml block. A run never crosses a multiple of 32.
template <GgmlType kType>
inline void read_ggml_run(const std::byte* block, int index, uint8_t* out);

template <GgmlType kType>
class GgmlCodes {
 public:
  explicit GgmlCodes(const StoredMatrix& matrix)
      : codes_(matrix.codes.data()), row_bytes_(matrix.row_bytes) {}

  static constexpr GgmlBlock kBlock = *find_ggml_block(static_cast<uint32_t>(kType));
  static constexpr int kCodeBits = kBlock.bits;
  static bool is_whole_run(int column, int count) {
    return count == kRunColumns && column % kRunColumns == 0;
  }
  void read_run(int stored_row, int column, uint8_t* out) const {
    const std::byte* block = codes_ + static_cast<size_t>(stored_row) * row_bytes_ +
                             static_cast<size_t>(column / kBlock.columns) * kBlock.bytes;
    read_ggml_run<kType>(block, column % kBlock.columns / kRunColumns, out);
  }
  void read_part(int stored_row, int column, int count, uint8_t* out) const {
    uint8_t run[kRunColumns];
    const int begin = column % kRunColumns;
    read_run(stored_row, column - begin, run);
    std::memcpy(out, run + begin, static_cast<size_t>(count));
  }

 private:
  const std::byte* codes_;
  size_t row_bytes_;
};

// Columns 0-15 in the low nibbles of 16 bytes, 16-31 in the high ones.
inline void read_split_nibbles(const std::byte* from, uint8_t* out) {
  const Bytes16 bytes = load_bytes16(from);
  store_bytes16(byte_bits(bytes, 0, 15), out);
  store_bytes16(byte_bits(bytes, 4, 15), out + 16);
}

// The same with bit 4 of column e as bit e of a word.
inline void read_split_fives(const std::byte* high, const std::byte* nibbles, uint8_t* out) {
  read_split_nibbles(nibbles, out);
  for (int part = 0; part < 4; ++part) {
    // Byte i keeps only bit i, and becomes 16 if that is set.
    const uint64_t one_each =
        static_cast<uint64_t>(high[part]) * 0x0101010101010101 & 0x8040201008040201;
    const uint64_t fives = (one_each + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;
    uint64_t codes;
    std::memcpy(&codes, out + part * 8, 8);
    codes |= fives << 4;
    std::memcpy(out + part * 8, &codes, 8);
  }
}

template <GgmlType kType>
inline void read_ggml_run(const std::byte* block, int index, uint8_t* out) {
  if constexpr (kType == GgmlType::kQ4_0 || kType == GgmlType::kIQ4_NL) {
    read_split_nibbles(block + 2, out);
  } else if constexpr (kType == GgmlType::kQ4_1) {
    read_split_nibbles(block + 4, out);
  } else if constexpr (kType == GgmlType::kMXFP4) {
    read_split_nibbles(block + 1, out);
  } else if constexpr (kType == GgmlType::kIQ4_XS) {
    read_split_nibbles(block + 8 + 16 * index, out);
  } else if constexpr (kType == GgmlType::kQ5_0) {
    read_split_fives(block + 2, block + 6, out);
  } else if constexpr (kType == GgmlType::kQ5_1) {
    read_split_fives(block + 4, block + 8, out);
  } else {
    for (int half = 0; half < 32; half += 16) {
      Bytes16 codes;
      if constexpr (kType == GgmlType::kQ8_0) {
        codes = load_bytes16(block + 2 + half) ^ (Bytes16{} + uint8_t{128});
      } else if constexpr (kType == GgmlType::kQ2_K) {
        codes = byte_bits(load_bytes16(block + 16 + index / 4 * 32 + half), index % 4 * 2, 3);
      } else if constexpr (kType == GgmlType::kQ3_K) {
        codes = byte_bits(load_bytes16(block + 32 + index / 4 * 32 + half), index % 4 * 2, 3) |
                shift_left(byte_bits(load_bytes16(block + half), index, 1), 2);
      } else if constexpr (kType == GgmlType::kQ4_K) {
        codes = byte_bits(load_bytes16(block + 16 + index / 2 * 32 + half), index % 2 * 4, 15);
      } else if constexpr (kType == GgmlType::kQ5_K) {
        codes = byte_bits(load_bytes16(block + 48 + index / 2 * 32 + half), index % 2 * 4, 15) |
                shift_left(byte_bits(load_bytes16(block + 16 + half), index, 1), 4);
      } else {
        static_assert(kType == GgmlType::kQ6_K);
        const int low = index / 4 * 64 + index % 2 * 32 + half;
        codes =
            byte_bits(load_bytes16(block + low), index % 4 / 2 * 4, 15) |
            shift_left(
                byte_bits(load_bytes16(block + 128 + index / 4 * 32 + half), index % 4 * 2, 3), 4);
      }
      store_bytes16(codes, out + half);
    }
  }
}

template <class Use>
void with_ggml_codes(const StoredMatrix& matrix, Use use) {
  switch (static_cast<GgmlType>(matrix.gguf_type)) {
    case GgmlType::kQ4_0:
      return use(GgmlCodes<GgmlType::kQ4_0>(matrix), CodeMeaning{8});
    case GgmlType::kQ4_1:
      return use(GgmlCodes<GgmlType::kQ4_1>(matrix), CodeMeaning{0});
    case GgmlType::kQ5_0:
      return use(GgmlCodes<GgmlType::kQ5_0>(matrix), CodeMeaning{16});
    case GgmlType::kQ5_1:
      return use(GgmlCodes<GgmlType::kQ5_1>(matrix), CodeMeaning{0});
    case GgmlType::kQ8_0:
      return use(GgmlCodes<GgmlType::kQ8_0>(matrix), CodeMeaning{128});
    case GgmlType::kQ2_K:
      return use(GgmlCodes<GgmlType::kQ2_K>(matrix), CodeMeaning{0});
    case GgmlType::kQ3_K:
      return use(GgmlCodes<GgmlType::kQ3_K>(matrix), CodeMeaning{4});
    case GgmlType::kQ4_K:
      return use(GgmlCodes<GgmlType::kQ4_K>(matrix), CodeMeaning{0});
    case GgmlType::kQ5_K:
      return use(GgmlCodes<GgmlType::kQ5_K>(matrix), CodeMeaning{0});
    case GgmlType::kQ6_K:
      return use(GgmlCodes<GgmlType::kQ6_K>(matrix), CodeMeaning{32});
    case GgmlType::kIQ4_NL:
      return use(GgmlCodes<GgmlType::kIQ4_NL>(matrix), CodeMeaning{kIq4Offset, kIq4Table});
    case GgmlType::kIQ4_XS:
      return use(GgmlCodes<GgmlType::kIQ4_XS>(matrix), CodeMeaning{kIq4Offset, kIq4Table});
    case GgmlType::kMXFP4:
      return use(GgmlCodes<GgmlType::kMXFP4>(matrix), CodeMeaning{kE2M1Offset, kE2M1Table});
    case GgmlType::kF32:
    case GgmlType::kF16:
    case GgmlType::kBF16:
      break;
  }
  LOCKSTEP_CHECK(false && "plain elements have no codes");
}

template <class Use>
void with_stream_codes(const StoredMatrix& matrix, CodeMeaning meaning, Use use) {
  switch (matrix.bits) {
    case 2:
      return use(StreamCodes<2>(matrix), meaning);
    case 3:
      return use(StreamCodes<3>(matrix), meaning);
    case 4:
      return use(StreamCodes<4>(matrix), meaning);
    case 5:
      return use(StreamCodes<5>(matrix), meaning);
    case 6:
      return use(StreamCodes<6>(matrix), meaning);
    default:
      return use(StreamCodes<8>(matrix), meaning);
  }
}

// Calls use(reader, meaning) with the reader of the matrix's codes, which has
//   static constexpr int kCodeBits,
//   static bool is_whole_run(int column, int count),
//   void read_run(int stored_row, int column, uint8_t* out), for kRunColumns columns,
//   void read_part(int stored_row, int column, int count, uint8_t* out), for fewer.
// The offset is 0 with zero points or biases. Not for plain elements.
template <class Use>
void with_stored_codes(const StoredMatrix& matrix, Use use) {
  const int middle = matrix.bits > 0 && matrix.zeros.empty() ? 1 << (matrix.bits - 1) : 0;
  switch (matrix.format) {
    case StoredFormat::kAffine:
      return with_stream_codes(matrix, CodeMeaning{0}, use);
    case StoredFormat::kFp8:
      return use(StreamCodes<8>(matrix), CodeMeaning{0, nullptr, true});
    case StoredFormat::kFp4:
      return use(StreamCodes<4>(matrix), CodeMeaning{kE2M1Offset, kE2M1Table});
    case StoredFormat::kPackedInt:
      return with_stream_codes(matrix, CodeMeaning{middle}, use);
    case StoredFormat::kGptq:
      if (matrix.bits == 8) return use(GptqCodes<8>(matrix), CodeMeaning{middle});
      return use(GptqCodes<4>(matrix), CodeMeaning{middle});
    case StoredFormat::kAwq:
      return use(AwqCodes(matrix), CodeMeaning{middle});
    case StoredFormat::kGguf:
      return with_ggml_codes(matrix, use);
    case StoredFormat::kPlain:
      break;
  }
  LOCKSTEP_CHECK(false && "plain elements have no codes");
}

}  // namespace lockstep

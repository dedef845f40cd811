#include "device/pack_codes.h"

#include <cstring>

#include "tensor/stored_codes.h"

namespace lockstep {
namespace {

constexpr int kQuads = kBlockColumns / 4;
constexpr int kQuarters = kLanes / 4;

// Four rows of one quad: a quad's codes in a row are one word.
using Words4 = uint32_t __attribute__((vector_size(16)));

// The codes of a block, by (quad, row / 4).
struct QuadCodes {
  Words4 words[kQuads][kQuarters];
};

// One byte for each code, by row.
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

// Bits [shift, shift + kBits) of all codes; returns where the next plane begins.
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

template <class Reader>
void pack_blocks(const Reader& reader, const MatrixSource& source, const PackPlan& plan,
                 std::span<const int> stored_rows, std::byte* out) {
  BlockCodes codes;  // rows that the tile lacks stay 0
  QuadCodes quads;
  for (const BlockColumns& block : plan.blocks) {
    const int column = source.column_begin + block.begin;
    if (Reader::is_whole_run(column, block.count)) {
      for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
        reader.read_run(stored_rows[lane], column, codes.rows[lane]);
      }
    } else {
      codes = {};
      for (size_t lane = 0; lane < stored_rows.size(); ++lane) {
        reader.read_part(stored_rows[lane], column, block.count, codes.rows[lane]);
      }
    }
    interleave(codes, quads);
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

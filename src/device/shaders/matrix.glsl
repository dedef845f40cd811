// How a packed matrix (kernels/packed_matrix.h) is read: codes and scales of one row of a block.
// Addresses inside a group of tiles are in words.

// The format of all matrices of a pipeline; kAnyFormat: each matrix says its own.
const uint kAnyFormat = 255u;
layout(constant_id = 10) const uint kCodes = kAnyFormat;
layout(constant_id = 11) const uint kScales = kAnyFormat;

// PackedCodes
const uint kF32 = 0u, kF16 = 1u, kBF16 = 2u, kBits2 = 3u, kBits3 = 4u, kBits4 = 5u, kBits5 = 6u,
           kBits6 = 7u, kBits8 = 8u, kTable4 = 9u, kFp8 = 10u, kColumnBits4 = 11u,
           kColumnBits8 = 12u, kColumnFp8 = 13u;
// PackedScales
const uint kScaleF32 = 1u, kScaleF16 = 2u, kScaleBF16 = 3u, kScaleE8M0 = 4u, kScaleTileF32 = 5u,
           kF32Bias = 6u, kF16Bias = 7u, kBF16Bias = 8u, kF32Zero = 9u, kF16Zero = 10u,
           kBF16Zero = 11u, kE4M3Halves = 12u, kSuper = 13u, kSuperMin = 14u, kSuperHalves = 15u,
           kSuperMinHalves = 16u;

uint codes_of(MatrixInfo m) { return kCodes == kAnyFormat ? m.codes : kCodes; }
uint scales_of(MatrixInfo m) { return kScales == kAnyFormat ? m.scales : kScales; }

bool has_coded_columns(uint codes) { return codes >= kColumnBits4; }
bool is_by_column(uint codes) { return codes <= kBF16 || has_coded_columns(codes); }
// Words of a tile's column.
uint column_words(uint codes) {
  if (has_coded_columns(codes)) return 2u + kTileRows / (codes == kColumnBits4 ? 8u : 4u);
  return codes == kF32 ? kTileRows : kTileRows / 2u;
}
bool has_halves(uint scales) {
  return scales == kE4M3Halves || scales == kSuperHalves || scales == kSuperMinHalves;
}

uint bits_of_codes(uint codes) {
  if (codes == kTable4) return 4u;
  if (codes == kBits8 || codes == kFp8) return 8u;
  return codes - 1u;  // kBits2 .. kBits6
}

// Formula in kernels/generic/scales.inl.
const uint kByScale = 0u, kByBias = 1u, kByZero = 2u;
uint formula_of(uint scales) {
  if (scales >= kF32Bias && scales <= kBF16Bias) return kByBias;
  if (scales == kSuperMin || scales == kSuperMinHalves) return kByBias;
  return scales >= kF32Zero && scales <= kBF16Zero ? kByZero : kByScale;
}

// Words of a tile's part of a piece: its head, and data of each of its blocks.
uint head_words(uint scales) {
  switch (scales) {
    case kScaleF32: return 16u;
    case kScaleF16: case kScaleBF16: case kSuper: case kSuperHalves: return 8u;
    case kScaleE8M0: return 4u;
    case kScaleTileF32: return 1u;
    case kF32Bias: return 32u;
    case kF16Bias: case kBF16Bias: case kSuperMin: case kSuperMinHalves: return 16u;
    case kF32Zero: return 20u;
    case kF16Zero: case kBF16Zero: return 12u;
    default: return 0u;
  }
}
uint block_words(uint scales) {
  switch (scales) {
    case kSuper: return 4u;
    case kE4M3Halves: case kSuperMin: case kSuperHalves: return 8u;
    case kSuperMinHalves: return 16u;
    default: return 0u;
  }
}

// One row of a tile.
struct RowPlace {
  Words group;
  uint tiles;  // of the group
  uint tile;   // in the group
  uint row;    // in the tile
};
RowPlace place_of_row(MatrixInfo m, uint tile, uint row) {
  const uint first = tile / kTilesOfGroup * kTilesOfGroup;
  const uint all = (m.rows + kTileRows - 1u) / kTileRows;
  RowPlace place;
  place.group = Words(advance(m.tiles, first, m.tile_words * 4u));
  place.tiles = min(all - first, kTilesOfGroup);
  place.tile = tile - first;
  place.row = row;
  return place;
}

uint byte_at(Words words, uint at, uint index) {
  return (words.at[at + index / 4u] >> (8u * (index & 3u))) & 255u;
}
uint nibble_at(Words words, uint at, uint index) {
  return (words.at[at + index / 8u] >> (4u * (index & 7u))) & 15u;
}
uint half_at(Words words, uint at, uint index) {
  return (words.at[at + index / 2u] >> (16u * (index & 1u))) & 0xffffu;
}

// Four columns of `bits` bits each, quad `k` of a block, as bytes; `words` begins at the row.
uint spread_bits(Words words, uint k, uint bits) {
  const uint quads = 8u / bits;
  const uint word = words.at[kTileRows * (k / quads)] >> (bits * (k % quads));
  return word & (((1u << bits) - 1u) * 0x01010101u);
}
uint spread_above(Words words, uint at, uint k, uint bits) {
  return spread_bits(Words(advance(uvec2(words), 4u * at)), k, bits);
}
// The codes of a quad; those of kTable4 are not yet looked up.
uint quad_of(uint codes, Words words, uint k) {
  switch (codes) {
    case kBits2: return spread_bits(words, k, 2u);
    case kBits3: return spread_bits(words, k, 2u) | spread_above(words, 32u, k, 1u) << 2;
    case kBits4: case kTable4: return spread_bits(words, k, 4u);
    case kBits5: return spread_bits(words, k, 4u) | spread_above(words, 64u, k, 1u) << 4;
    case kBits6: return spread_bits(words, k, 4u) | spread_above(words, 64u, k, 2u) << 4;
    default: return words.at[kTileRows * k];
  }
}
uint table_at(MatrixInfo m, uint code) {
  return (m.table[code / 4u] >> (8u * (code & 3u))) & 255u;
}
// The row's codes of a block.
Words codes_of_block(MatrixInfo m, RowPlace place, uint block) {
  const uint words = kTileRows * bits_of_codes(codes_of(m));
  const uint at = (block * place.tiles + place.tile) * words + place.row;
  return Words(advance(uvec2(place.group), 4u * at));
}

// A block's scale and bias (or minus the zero point), or those of half of it.
struct RowScale {
  float scale;
  float bias;
};
RowScale scale_of(MatrixInfo m, RowPlace place, BlockInfo of, uint block, uint half_index) {
  const uint kind = scales_of(m), row = place.row;
  const uint of_head = head_words(kind), of_block = block_words(kind);
  const uint begin = place.tiles * m.scales_at;
  const uint head = begin + place.tiles * (of.piece * of_head + of.piece_begin * of_block) +
                    place.tile * of_head;
  const uint own = begin + place.tiles * ((of.piece + 1u) * of_head + block * of_block) +
                   place.tile * of_block;
  RowScale result;
  result.scale = 0.0;
  result.bias = 0.0;
  Words w = place.group;
  switch (kind) {
    case kScaleF32: result.scale = of_bits(w.at[head + row]); break;
    case kScaleF16: result.scale = of_half(half_at(w, head, row)); break;
    case kScaleBF16: result.scale = of_bf16(half_at(w, head, row)); break;
    case kScaleE8M0: result.scale = exact_mul(m.factor, of_e8m0(byte_at(w, head, row))); break;
    case kScaleTileF32: result.scale = of_bits(w.at[head]); break;
    case kF32Bias:
      result.scale = of_bits(w.at[head + row]);
      result.bias = of_bits(w.at[head + 16u + row]);
      break;
    case kF16Bias:
      result.scale = of_half(half_at(w, head, row));
      result.bias = of_half(half_at(w, head + 8u, row));
      break;
    case kBF16Bias:
      result.scale = of_bf16(half_at(w, head, row));
      result.bias = of_bf16(half_at(w, head + 8u, row));
      break;
    case kF32Zero:
      result.scale = of_bits(w.at[head + row]);
      result.bias = exact_sub(0.0, float(byte_at(w, head + 16u, row)));
      break;
    case kF16Zero:
      result.scale = of_half(half_at(w, head, row));
      result.bias = exact_sub(0.0, float(byte_at(w, head + 8u, row)));
      break;
    case kBF16Zero:
      result.scale = of_bf16(half_at(w, head, row));
      result.bias = exact_sub(0.0, float(byte_at(w, head + 8u, row)));
      break;
    case kE4M3Halves:
      result.scale = exact_mul(
          m.factor, exact_mul(of_fp8(byte_at(w, own + 4u * half_index, row)), 256.0));
      break;
    case kSuper: case kSuperHalves: {
      const int s = bitfieldExtract(int(byte_at(w, own + 4u * half_index, row)), 0, 8);
      result.scale = exact_mul(of_half(half_at(w, head, row)), float(s));
      break;
    }
    case kSuperMin: case kSuperMinHalves: {
      const uint halves = kind == kSuperMin ? 1u : 2u;
      const float d = of_half(half_at(w, head, row));
      const float least = exact_sub(0.0, of_half(half_at(w, head + 8u, row)));
      result.scale = exact_mul(d, float(byte_at(w, own + 4u * half_index, row)));
      result.bias = exact_mul(least, float(byte_at(w, own + 4u * (halves + half_index), row)));
      break;
    }
    default: break;
  }
  return result;
}

// The weight of a row, `column` columns after the one at `first` (place_of_column).
float weight_at(uint codes, uvec2 first, uint column, uint row) {
  const uint at = column * column_words(codes);
  if (codes == kF32) return Floats(first).at[at];
  Words words = Words(first);
  if (has_coded_columns(codes)) {
    const bool are_nibbles = codes == kColumnBits4;
    const uint code = are_nibbles ? nibble_at(words, at + 2u, row) : byte_at(words, at + 2u, row);
    const float value = codes == kColumnFp8 ? exact_mul(of_fp8(code), 256.0) : float(code);
    return exact_fma(of_bits(words.at[at]), value, of_bits(words.at[at + 1u]));
  }
  const uint word = words.at[at], bits = (row & 1u) == 0u ? word & 0xffffu : word >> 16;
  return codes == kF16 ? of_half(bits) : of_bf16(bits);
}
// Where a coded column begins; the row's element of a plain one, or the word that has it.
uvec2 place_of_column(MatrixInfo m, RowPlace place, uint column) {
  const uint codes = codes_of(m);
  uint at = place.tile * m.tile_words + column * column_words(codes);
  if (codes <= kBF16) at += codes == kF32 ? place.row : place.row / 2u;
  return advance(uvec2(place.group), 4u * at);
}

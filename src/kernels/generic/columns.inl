// Plain elements, and coded columns, times tokens. A register block is Tiles x Tokens sums; a
// weight is loaded and converted once for all tokens of the block. In any block, each sum is the
// same sequence of operations: the chains of runs of kPlainRunColumns columns, added in ascending
// order.

// How far ahead of their use weights are fetched into the cache.
constexpr size_t kPrefetchBytes = 2048;

constexpr int kFirstLevel = 3, kSecondLevel = 2;  // of the caches, for __builtin_prefetch

// Fetches the cache lines of [from, from + bytes).
template <int kLevel = kFirstLevel>
LANES_INLINE void fetch_lines(const std::byte* from, size_t bytes) {
#pragma GCC unroll 8
  for (size_t line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 0, kLevel);
}

struct WeightStream {
  const std::byte* begin;
  size_t tile_bytes;
};

// At `offset` bytes from the beginning of a tile, fetches what is needed kPrefetchBytes later. A
// tile is followed by the other tiles of this block, so past its end the fetch continues in the
// next block.
template <int Tiles>
LANES_INLINE void prefetch_block(WeightStream stream, size_t offset) {
  size_t ahead = offset + kPrefetchBytes;
  if (ahead >= stream.tile_bytes) ahead += (Tiles - 1) * stream.tile_bytes;
  for (int tile = 0; tile < Tiles; ++tile) {
    __builtin_prefetch(stream.begin + static_cast<size_t>(tile) * stream.tile_bytes + ahead);
  }
}

// How a tile's column is stored.
template <class Element>
struct PlainColumn {
  static constexpr size_t kBytes = kLanes * sizeof(Element);
  static LANES_INLINE F32x16 load(const std::byte* from) {
    return F32x16::load(reinterpret_cast<const Element*>(from));
  }
};
template <PackedCodes kCodes>
struct CodedColumn {
  static constexpr size_t kBytes = column_bytes(kCodes);
  static LANES_INLINE F32x16 load(const std::byte* from) {
    const ColumnScale& by = *reinterpret_cast<const ColumnScale*>(from);
    return fma(F32x16::broadcast(by.scale), load_codes(from + sizeof by),
               F32x16::broadcast(by.bias));
  }
  static LANES_INLINE F32x16 load_codes(const std::byte* from) {
    if constexpr (kCodes == PackedCodes::kColumnBits4) return load_u4(from);
    if constexpr (kCodes == PackedCodes::kColumnBits8) return load_u8(from);
    return mul(load_fp8(from), F32x16::broadcast(256.0f));
  }
};

// sum[tile][token] += weight * input over one column.
template <class Column, int Tiles, int Tokens>
LANES_INLINE void add_column(const std::byte* weights, size_t tile_bytes, const float* input,
                             size_t input_stride, F32x16 (&sum)[Tiles][Tokens]) {
  F32x16 weight[Tiles];
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile)
    weight[tile] = Column::load(weights + static_cast<size_t>(tile) * tile_bytes);
#pragma GCC unroll 8
  for (int token = 0; token < Tokens; ++token) {
    const F32x16 x = F32x16::broadcast(input[static_cast<size_t>(token) * input_stride]);
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) {
      sum[tile][token] = fma(weight[tile], x, sum[tile][token]);
    }
  }
}

template <int Tiles, int Tokens>
LANES_INLINE void clear(F32x16 (&sum)[Tiles][Tokens]) {
#pragma GCC unroll 4
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
    for (int token = 0; token < Tokens; ++token) sum[tile][token] = F32x16::broadcast(0.0f);
  }
}

// Continues the chains of `sum` over columns [begin, end).
template <class Column, int Tiles, int Tokens>
LANES_INLINE void add_columns(WeightStream stream, const float* input, size_t input_stride,
                              int begin, int end, F32x16 (&sum)[Tiles][Tokens]) {
  constexpr size_t kColumnBytes = Column::kBytes;
  constexpr int kColumnsPerLine = 64 / static_cast<int>(kColumnBytes);
  int column = begin;
  for (; column + kColumnsPerLine <= end; column += kColumnsPerLine) {
    prefetch_block<Tiles>(stream, static_cast<size_t>(column) * kColumnBytes);
#pragma GCC unroll 2
    for (int i = 0; i < kColumnsPerLine; ++i) {
      add_column<Column>(stream.begin + static_cast<size_t>(column + i) * kColumnBytes,
                         stream.tile_bytes, input + column + i, input_stride, sum);
    }
  }
  for (; column < end; ++column) {
    add_column<Column>(stream.begin + static_cast<size_t>(column) * kColumnBytes, stream.tile_bytes,
                       input + column, input_stride, sum);
  }
}

// Adds the runs of columns [begin, end) to `sum`; the first run starts at `begin`.
template <class Column, int Tiles, int Tokens>
LANES_INLINE void add_runs(WeightStream stream, const float* input, size_t input_stride, int begin,
                           int end, F32x16 (&sum)[Tiles][Tokens]) {
  for (int column = begin; column < end;) {
    const int run_end = end - column > kPlainRunColumns ? column + kPlainRunColumns : end;
    F32x16 run[Tiles][Tokens];
    clear(run);
    add_columns<Column>(stream, input, input_stride, column, run_end, run);
#pragma GCC unroll 4
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 8
      for (int token = 0; token < Tokens; ++token) {
        sum[tile][token] = add(sum[tile][token], run[tile][token]);
      }
    }
    column = run_end;
  }
}

// Rows of a packed matrix as floats.

LANES_INLINE float lane_of(F32x16 x, int lane) {
  float lanes[kLanes];
  store(lanes, x);
  return lanes[lane];
}

template <class Weight>
LANES_INLINE void embed_plain(const PackedMatrix& matrix, int row, float* to) {
  const Weight* from = reinterpret_cast<const Weight*>(
                           matrix.tiles + static_cast<size_t>(row / kLanes) * matrix.tile_bytes) +
                       row % kLanes;
  for (int column = 0; column < matrix.columns; ++column) {
    to[column] = to_float(from[static_cast<size_t>(column) * kLanes]);
  }
}

template <PackedCodes kCodes>
LANES_INLINE void embed_coded(const PackedMatrix& matrix, int row, float* to) {
  const std::byte* tile = matrix.tiles + static_cast<size_t>(row / kLanes) * matrix.tile_bytes;
  for (int column = 0; column < matrix.columns; ++column) {
    const std::byte* from = tile + static_cast<size_t>(column) * column_bytes(kCodes);
    to[column] = lane_of(CodedColumn<kCodes>::load(from), row % kLanes);
  }
}

// The byte of quad K and column Column for the row whose bytes begin at `row`, which is 4 times its
// lane after the beginning of the block.
template <int Bits, int K, int Column>
LANES_INLINE int row_bits(const uint8_t* row) {
  constexpr int kQuadsPerVector = 8 / Bits;
  constexpr int kShift = Bits * (K % kQuadsPerVector);
  return (row[64 * (K / kQuadsPerVector) + Column] >> kShift) & ((1 << Bits) - 1);
}

template <int Bits, int K, int Column>
LANES_INLINE int row_code(const uint8_t* row) {
  if constexpr (Bits == 2 || Bits == 4 || Bits == 8) {
    return row_bits<Bits, K, Column>(row);
  } else {
    constexpr int kLowBits = Bits == 3 ? 2 : 4;
    return row_bits<kLowBits, K, Column>(row) |
           row_bits<Bits - kLowBits, K, Column>(row + 64 * kLowBits) << kLowBits;
  }
}

// The unscaled values of the codes of one row of a block.
template <PackedCodes kCodes>
LANES_INLINE void row_weights(const PackedMatrix& matrix, const std::byte* block, int lane,
                              float* to) {
  const uint8_t* row = reinterpret_cast<const uint8_t*>(block) + 4 * lane;
  for_constants<0, kBlockColumns>([&](auto column) LANES_LAMBDA {
    constexpr int kColumn = decltype(column)::value;
    int code = row_code<code_bits(kCodes), kColumn / 4, kColumn % 4>(row);
    if constexpr (kCodes == PackedCodes::kFp8) {
      to[kColumn] = to_float(half_of_fp8(static_cast<uint8_t>(code))) * 256.0f;
      return;
    }
    if constexpr (kCodes == PackedCodes::kTable4) code = matrix.table[code];
    to[kColumn] = static_cast<float>(code - matrix.code_offset);
  });
}

// Columns [begin, end) of a block, which share their scale.
LANES_INLINE void scale_row(Formula formula, F32x16 scales, F32x16 biases, int lane,
                            const float* weights, int begin, int end, float* to) {
  const float scale = lane_of(scales, lane), bias = lane_of(biases, lane);
  for (int i = begin; i < end; ++i) {
    switch (formula) {
      case Formula::kScale:
        to[i] = scale * weights[i];
        break;
      case Formula::kBias:
        to[i] = __builtin_fmaf(scale, weights[i], bias);
        break;
      case Formula::kZero:
        to[i] = scale * (weights[i] + bias);
        break;
    }
  }
}

template <PackedCodes kCodes>
void embed_row(const EmbedArgs& args, int row, float* to) {
  const PackedMatrix& matrix = *args.matrix;
  const Formula formula = formula_of(matrix.scales);
  const bool is_halved = has_halves(matrix.scales);
  const int lane = row % kLanes;
  const GroupPlace group = GroupPlace::of(matrix, row / kLanes);
  const auto tiles = static_cast<size_t>(group.tiles), tile = static_cast<size_t>(group.tile);
  const std::byte* codes = group.begin + tile * block_bytes(kCodes);
  const std::byte* at = group.begin + tiles * matrix.scales_at;
  const ScaleBytes bytes = scale_bytes(matrix.scales);
  BlockScales scales = {};
  int piece = 0;
  int left = 0;  // blocks left in this piece
  for (int block = 0; block < matrix.block_count; ++block) {
    while (left == 0) {
      read_head(matrix.scales, matrix.factor, at + tile * bytes.of_head, scales);
      at += tiles * bytes.of_head;
      left = matrix.piece_blocks[piece++];
    }
    --left;
    read_block_scales(matrix.scales, matrix.factor, at + tile * bytes.of_block, scales);
    at += tiles * bytes.of_block;
    float weights[kBlockColumns];
    row_weights<kCodes>(matrix, codes, lane, weights);
    codes += tiles * block_bytes(kCodes);
    const BlockColumns columns = args.blocks[block];
    const int middle = !is_halved || columns.count < kLanes ? columns.count : kLanes;
    float* out = to + columns.begin;
    scale_row(formula, scales.scale[0], scales.bias[0], lane, weights, 0, middle, out);
    scale_row(formula, scales.scale[1], scales.bias[1], lane, weights, middle, columns.count, out);
  }
}

LANES_INLINE void embed_any(const EmbedArgs& args, int row, float* to) {
  switch (args.matrix->codes) {
    case PackedCodes::kF32:
      return embed_plain<float>(*args.matrix, row, to);
    case PackedCodes::kF16:
      return embed_plain<F16>(*args.matrix, row, to);
    case PackedCodes::kBF16:
      return embed_plain<BF16>(*args.matrix, row, to);
    case PackedCodes::kBits2:
      return embed_row<PackedCodes::kBits2>(args, row, to);
    case PackedCodes::kBits3:
      return embed_row<PackedCodes::kBits3>(args, row, to);
    case PackedCodes::kBits4:
      return embed_row<PackedCodes::kBits4>(args, row, to);
    case PackedCodes::kBits5:
      return embed_row<PackedCodes::kBits5>(args, row, to);
    case PackedCodes::kBits6:
      return embed_row<PackedCodes::kBits6>(args, row, to);
    case PackedCodes::kBits8:
      return embed_row<PackedCodes::kBits8>(args, row, to);
    case PackedCodes::kTable4:
      return embed_row<PackedCodes::kTable4>(args, row, to);
    case PackedCodes::kFp8:
      return embed_row<PackedCodes::kFp8>(args, row, to);
    case PackedCodes::kColumnBits4:
      return embed_coded<PackedCodes::kColumnBits4>(*args.matrix, row, to);
    case PackedCodes::kColumnBits8:
      return embed_coded<PackedCodes::kColumnBits8>(*args.matrix, row, to);
    case PackedCodes::kColumnFp8:
      return embed_coded<PackedCodes::kColumnFp8>(*args.matrix, row, to);
  }
}

void embed(const EmbedArgs& args) {
  for (int token = args.token_begin; token < args.token_end; ++token) {
    const int row = args.rows[token];
    if (row < 0) continue;
    embed_any(args, row, args.output + static_cast<size_t>(token) * args.output_stride);
  }
}

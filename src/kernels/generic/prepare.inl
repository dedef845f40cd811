// Activations in the form that the blocks of a quantised matrix need (PrepareArgs in kernels.h).

struct BlockInput {
  F32x16 low;   // columns 0-15; zero if the block lacks them
  F32x16 high;  // columns 16-31
};

LANES_INLINE BlockInput load_block(const float* x, int count) {
  if (count == kBlockColumns) return {F32x16::load(x), F32x16::load(x + kLanes)};
  const int low = count < kLanes ? count : kLanes;
  return {F32x16::load_partial(x, low), F32x16::load_partial(x + low, count - low)};
}

// No code exceeds +-127: for x = m, the product is at most 127 * (1 + 2^-22).
LANES_INLINE void prepare_block(BlockInput x, InputBlock8& to) {
  constexpr uint32_t kInfinity = 0x7f800000u;
  const uint32_t most = max_magnitude(x.low, x.high);
  const float m = float_of_bits(most);
  if (most >= kInfinity || most < bits_of_float(kBlockLeast)) {
    to = {};
    if (most >= kInfinity) to.scale = m / 127.0f;
    return;
  }
  const F32x16 factor = F32x16::broadcast(127.0f / m);
  to.half_sums[0] = store_rounded(to.codes, mul(x.low, factor));
  to.half_sums[1] = store_rounded(to.codes + kLanes, mul(x.high, factor));
  to.sum = to.half_sums[0] + to.half_sums[1];
  to.scale = m / 127.0f;
}

// The sum of sixteen columns is added like sum_lanes: i and i + 8, then i + 4, i + 2, i + 1.
LANES_INLINE void prepare_block(BlockInput x, InputBlockF& to) {
  store(to.values, x.low);
  store(to.values + kLanes, x.high);
  to.half_sums[0] = sum_lanes(x.low);
  to.half_sums[1] = sum_lanes(x.high);
  to.sum = to.half_sums[0] + to.half_sums[1];
  to.padding = 0.0f;
}

template <class Block>
void prepare(const PrepareArgs& args) {
  for (int token = args.token_begin; token < args.token_end; ++token) {
    const float* x = args.input + static_cast<size_t>(token) * args.input_stride;
    Block* to = static_cast<Block*>(args.output) +
                static_cast<size_t>(token) * static_cast<size_t>(args.block_count);
    for (int i = 0; i < args.block_count; ++i) {
      prepare_block(load_block(x + args.blocks[i].begin, args.blocks[i].count), to[i]);
    }
  }
}

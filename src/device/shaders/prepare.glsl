// A block of activations in the form that a quantised matrix takes: kernels/generic/prepare.inl. One
// invocation makes it, of columns that its workgroup has put into shared memory. The includer defines
// kStagedBlocks, how many blocks it puts there at most.

// Columns of one block are not in one bank.
shared float staged[kStagedBlocks * (kColumnsOfBlock + 1u)];
uint staged_at(uint column) { return column + column / kColumnsOfBlock; }

// Sixteen columns added as sum_lanes does: i and i + 8, then i + 4, i + 2, i + 1.
float sum_of_sixteen(float values[kColumnsOfBlock], uint first) {
  float lanes[16];
  [[unroll]] for (uint i = 0u; i < 16u; ++i) lanes[i] = values[first + i];
  [[unroll]] for (uint half_count = 8u; half_count > 0u; half_count /= 2u) {
    [[unroll]] for (uint i = 0u; i < half_count; ++i) {
      lanes[i] = exact_add(lanes[i], lanes[i + half_count]);
    }
  }
  return lanes[0];
}

void prepare_floats(float values[kColumnsOfBlock], Words to) {
  [[unroll]] for (uint i = 0u; i < kColumnsOfBlock; ++i) to.at[i] = bits_of(values[i]);
  const float low = sum_of_sixteen(values, 0u), high = sum_of_sixteen(values, 16u);
  to.at[32] = bits_of(exact_add(low, high));
  to.at[33] = bits_of(low);
  to.at[34] = bits_of(high);
  to.at[35] = 0u;
}

void prepare_integers(float values[kColumnsOfBlock], Words to) {
  uint most = 0u;
  [[unroll]] for (uint i = 0u; i < kColumnsOfBlock; ++i) most = max(most, magnitude_bits(values[i]));
  const bool is_number = most < kInfinityBits;
  if (!is_number || most < kBlockLeastBits) {
    for (uint i = 0u; i < kWordsOfBlock8; ++i) to.at[i] = 0u;
    if (!is_number) to.at[8] = most;
    return;
  }
  const float largest = of_bits(most), factor = exact_div(127.0, largest);
  int sums[2] = int[2](0, 0);
  [[unroll]] for (uint k = 0u; k < 8u; ++k) {
    uint word = 0u;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) {
      const int code = rounded(exact_mul(values[4u * k + i], factor));
      word |= (uint(code) & 255u) << (8u * i);
      sums[k / 4u] += code;
    }
    to.at[k] = word;
  }
  to.at[8] = bits_of(exact_div(largest, 127.0));
  to.at[9] = uint(sums[0] + sums[1]);
  to.at[10] = uint(sums[0]);
  to.at[11] = uint(sums[1]);
}

// Block `number` of the result, from the staged columns that begin at `first`. Columns beyond the
// block's own count as 0.
void prepare_staged(uint form, uint first, uint columns, uvec2 blocks, uint number) {
  float values[kColumnsOfBlock];
  [[unroll]] for (uint i = 0u; i < kColumnsOfBlock; ++i) {
    const float value = staged[staged_at(first + min(i, columns - 1u))];
    values[i] = i < columns ? value : 0.0;
  }
  if (form == kIntegerInput) {
    prepare_integers(values, Words(advance(blocks, number, kWordsOfBlock8 * 4u)));
  } else {
    prepare_floats(values, Words(advance(blocks, number, kWordsOfBlockF * 4u)));
  }
}

// Some blocks of a matrix's columns, one after the other.
struct BlockRange {
  uint first;  // block
  uint count;
  uint column_begin;
  uint column_end;
};
BlockRange staged_blocks(MatrixInfo m, uint first) {
  const uint count = min(m.block_count - first, kStagedBlocks);
  const BlockInfo last = Blocks(m.blocks).at[first + count - 1u];
  return BlockRange(first, count, Blocks(m.blocks).at[first].column_begin,
                    last.column_begin + last.columns);
}

// An invocation makes one of the staged blocks of a row.
void prepare_range(uint form, MatrixInfo m, BlockRange range, uint lane, uvec2 blocks, uint row) {
  if (lane >= range.count) return;
  const BlockInfo block = Blocks(m.blocks).at[range.first + lane];
  prepare_staged(form, block.column_begin - range.column_begin, block.columns, blocks,
                 row * m.block_count + range.first + lane);
}

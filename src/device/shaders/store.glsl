// Keys and values are rounded and written into their pages (kernels/generic/stored_kv.inl).
// STORED(i), a macro of the including file, is column i of the block.
// A block of columns of one token and head in its page: column c lies at first + c * stride, the
// scale of kKvQ8 at scale_index.
struct StoredBlock {
  uvec2 head;
  uint first;
  uint stride;
  uint scale_index;
};
StoredBlock block_of_key(uvec2 head, uint slot, uint head_dim, uint block) {
  StoredBlock to;
  to.head = head;
  to.first = key_index(slot, head_dim, block * kColumnsOfBlock);
  to.stride = kTileRows;
  to.scale_index = (slot / kTileRows * blocks_of_head(head_dim) + block) * kTileRows +
                   slot % kTileRows;
  return to;
}
StoredBlock block_of_value(uvec2 head, uint slot, uint head_dim, uint block) {
  StoredBlock to;
  to.head = head;
  to.first = value_index(slot, head_dim, block * kColumnsOfBlock);
  to.stride = 1u;
  to.scale_index = slot * blocks_of_head(head_dim) + block;
  return to;
}

void store_codes(uint count, StoredBlock to, uint head_dim) {
  uint most = 0u;
  for (uint i = 0u; i < count; ++i) most = max(most, magnitude_bits(STORED(i)));
  const bool is_nan_block = most >= kKvMostBits;
  float factor = 0.0;
  uint scale = is_nan_block ? 0x7fc0u : 0u;
  if (!is_nan_block && most >= kBlockLeastBits) {
    scale = (bits_of(exact_div(of_bits(most), 127.0)) + 0xffffu) >> 16;
    factor = exact_div(1.0, of_bf16(scale));
  }
  for (uint i = 0u; i < count; ++i) {
    const int code = factor == 0.0 ? 0 : rounded(exact_mul(STORED(i), factor));
    Bytes(to.head).at[to.first + i * to.stride] = uint8_t(uint(code) & 255u);
  }
  Halves(advance(to.head, kPositionsOfPage, head_dim)).at[to.scale_index] = uint16_t(scale);
}
// Rounds the first `count` columns and writes them.
void store_block(uint count, StoredBlock to, uint head_dim) {
  if (kKind == kKvQ8) {
    store_codes(count, to, head_dim);
    return;
  }
  for (uint i = 0u; i < count; ++i) {
    const uint index = to.first + i * to.stride;
    if (kKind == kKvF32) {
      Floats(to.head).at[index] = STORED(i);
    } else {
      Halves(to.head).at[index] = uint16_t(kKind == kKvBF16 ? to_bf16(STORED(i)) : to_half(STORED(i)));
    }
  }
}

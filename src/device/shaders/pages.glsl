// Pages of keys and values: KvKind and PageArgs in kernels/kernels.h.
const uint kKvF32 = 0u, kKvBF16 = 1u, kKvF16 = 2u, kKvQ8 = 3u;
#ifndef KIND_CONSTANT
#define KIND_CONSTANT 10
#endif
layout(constant_id = KIND_CONSTANT) const uint kKind = kKvF32;

const uint kKvMostBits = 0x7b800000u;  // 2^120

uint blocks_of_head(uint head_dim) {
  return (head_dim + kColumnsOfBlock - 1u) / kColumnsOfBlock;
}
uvec2 place_of_head(uvec2 first, PagesInfo pages, uint page, uint head) {
  return advance(advance(first, page, pages.page_bytes), head, pages.head_bytes);
}
uint key_index(uint position, uint head_dim, uint column) {
  return (position / kTileRows * head_dim + column) * kTileRows + position % kTileRows;
}
uint value_index(uint position, uint head_dim, uint column) {
  return position * head_dim + column;
}

// Elements of one head of a page; with kKvQ8 they are multiplied with the scale of their block.
uint element_bytes(uint kind) { return kind == kKvF32 ? 4u : kind == kKvQ8 ? 1u : 2u; }
uvec2 place_of_element(uint kind, uvec2 head, uint index) {
  return advance(head, index * element_bytes(kind));
}
float element_at(uint kind, uvec2 first, uint index) {
  if (kind == kKvF32) return Floats(first).at[index];
  if (kind == kKvBF16) return of_bf16(uint(Halves(first).at[index]));
  if (kind == kKvF16) return of_half(uint(Halves(first).at[index]));
  return float(bitfieldExtract(int(uint(Bytes(first).at[index])), 0, 8));
}
float scaled(uint kind, float element, float scale) {
  return kind == kKvQ8 ? exact_mul(element, scale) : element;
}
uvec2 place_of_scale(uvec2 head, uint index, uint head_dim) {
  return advance(head, kPositionsOfPage * head_dim + 2u * index);
}
float scale_at(uint kind, uvec2 first, uint index) {
  return kind == kKvQ8 ? of_bf16(uint(Halves(first).at[index])) : 1.0;
}

// The same of pages of kKind.
const uint kElementBytes = kKind == kKvF32 ? 4u : kKind == kKvQ8 ? 1u : 2u;
uvec2 place_of_element(uvec2 head, uint index) { return place_of_element(kKind, head, index); }
float element_at(uvec2 first, uint index) { return element_at(kKind, first, index); }
float scaled(float element, float scale) { return scaled(kKind, element, scale); }
float scale_at(uvec2 first, uint index) { return scale_at(kKind, first, index); }

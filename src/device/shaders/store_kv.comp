#version 450
#extension GL_GOOGLE_include_directive : require
// StoreKv: rounds keys and values and writes them into their pages
// (kernels/generic/stored_kv.inl). An invocation stores a block of columns of one token and head.
// StoreRows: there are only values.
#include "common.glsl"
#include "pages.glsl"

layout(local_size_x = 64) in;
PARAMETERS(StoreParams)

Floats stored_block;
#define STORED(i) stored_block.at[i]
#include "store.glsl"

void main() {
  const PagesInfo pages = PARAMS.pages;
  const uint head_dim = pages.head_dim, blocks = blocks_of_head(head_dim);
  const uint token = gl_WorkGroupID.y;
  const uint of_keys = is_none(PARAMS.keys) ? 0u : pages.kv_heads * blocks;
  const uint index = gl_GlobalInvocationID.x;  // (keys or values, head, block)
  if (index >= of_keys + pages.kv_heads * blocks) return;
  const bool is_value = index >= of_keys;
  const uint head = index / blocks % pages.kv_heads, block = index % blocks;
  const uint columns = is_value ? pages.value_dim : head_dim;
  const uint begin = block * kColumnsOfBlock;
  if (begin >= columns) return;
  const uint count = min(columns - begin, kColumnsOfBlock);
  const uint stride = is_value ? PARAMS.values_stride : PARAMS.keys_stride;
  const uvec2 row = advance(is_value ? PARAMS.values : PARAMS.keys, token, stride * 4u);
  stored_block = Floats(advance(row, head * columns + begin, 4u));
  const uint page = uint(Ints(PARAMS.page).at[token]), slot = uint(Ints(PARAMS.slot).at[token]);
  const uvec2 to = place_of_head(is_value ? pages.values : pages.keys, pages, page, head);
  store_block(count,
              is_value ? block_of_value(to, slot, head_dim, block)
                       : block_of_key(to, slot, head_dim, block),
              head_dim);
}

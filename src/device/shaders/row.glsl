// A head of one token in memory that a workgroup shares. The includer may define how many
// invocations it has.
#ifndef INVOCATIONS
#define INVOCATIONS kGroupSize
#endif

shared float row[kHeadDimMax];
shared float squares[kLanesOfNorm];
shared float shared_scale;

// The first columns of the row times 1 / rms and the weight, as norm.comp.
void norm_row(uint lane, uint columns, uvec2 weight, float epsilon) {
  [[unroll]] for (uint first = 0u; first < kLanesOfNorm; first += INVOCATIONS) {
    float chain = 0.0;
    for (uint i = first + lane; i < columns; i += kLanesOfNorm) {
      chain = exact_fma(row[i], row[i], chain);
    }
    squares[first + lane] = chain;
  }
  barrier();
  for (uint half_count = kLanesOfNorm / 2u; half_count > 0u; half_count /= 2u) {
    if (lane < half_count) squares[lane] = exact_add(squares[lane], squares[lane + half_count]);
    barrier();
  }
  if (lane == 0u) {
    const float mean = exact_div(squares[0], float(columns));
    shared_scale = exact_div(1.0, exact_sqrt(exact_add(mean, epsilon)));
  }
  barrier();
  for (uint i = lane; i < columns; i += INVOCATIONS) {
    row[i] = exact_mul(exact_mul(row[i], shared_scale), Floats(weight).at[i]);
  }
  barrier();
}

uint stored_begin;
#define STORED(i) row[stored_begin + (i)]
#include "store.glsl"

// Rounds the first columns of the row and writes them into a page.
void store_row(uint lane, uint columns, uint head_dim, uvec2 to, uint slot, bool is_value) {
  for (uint block = lane; block * kColumnsOfBlock < columns; block += INVOCATIONS) {
    stored_begin = block * kColumnsOfBlock;
    store_block(min(columns - stored_begin, kColumnsOfBlock),
                is_value ? block_of_value(to, slot, head_dim, block)
                         : block_of_key(to, slot, head_dim, block),
                head_dim);
  }
}


// Attention of one token and head over rows of pages, in ascending order (kernels/generic/chosen.inl
// and compressed.inl): as many whole pages together as have no more rows than there are invocations.
// An invocation scores one row, then joins those of a page, then has columns of the values.
// 1: a dispatch takes some of the pages, from page_begin on.
layout(constant_id = 12) const uint kIsCut = 0u;
PARAMETERS(AttentionParams)
#include "attention.glsl"

// The token of the workgroup.
uint token;
uint position;
Ints list;  // of its pages

// The including file says which rows it has. A row's tree lane is that of its bit.
struct RowPlace {
  uvec2 head;  // where the rows of its stored page begin, as values
  uint slot;
};
uint page_count();
uint entry_page_count();  // the first pages, whose rows are float32
uvec2 rows_of_page(uint page);  // a bit for each
RowPlace place_of_row(uint page, uint bit);
uvec2 keys_of(uvec2 head);  // where the keys of a stored page's rows begin

// The lowest bits of two words.
uvec2 lowest_bits(uint count) {
  return uvec2(count >= 32u ? ~0u : (1u << count) - 1u,
               count >= 64u ? ~0u : count <= 32u ? 0u : (1u << (count - 32u)) - 1u);
}

// The pages that are taken together, each with the invocation of its number.
shared uint ends[kGroupSize];  // of its rows
shared float maxima[kGroupSize];
shared float maxima_before[kGroupSize];
shared float sums[kGroupSize];
shared Factors factors[kGroupSize];
shared float trees[kGroupSize * kTileRows];
// Their rows.
shared uint rows[kGroupSize];  // (slot * kGroupSize + page) * kPositionsOfPage + bit
shared uvec2 heads[kGroupSize];
shared float p[kGroupSize];
shared uint taken;
shared uint first_page;  // the first of all that has rows, if it is among these
shared float last_maximum;

uint slot_of_row(uint r) { return rows[r] / (kGroupSize * kPositionsOfPage); }
uint page_of_row(uint r) { return rows[r] / kPositionsOfPage % kGroupSize; }

// Element `column` of a row, times its scale.
float row_value(uint kind, uint r, uint column, uint head_dim) {
  const uint slot = slot_of_row(r);
  const uvec2 at = place_of_element(kind, heads[r], value_index(slot, head_dim, column));
  const uint block = slot * blocks_of_head(head_dim) + column / kColumnsOfBlock;
  const uvec2 scale = place_of_scale(heads[r], block, head_dim);
  return scaled(kind, element_at(kind, at, 0u), scale_at(kind, scale, 0u));
}

float score_of_row(uint kind, uint r, uvec2 query, uint head_dim) {
  const uint slot = slot_of_row(r);
  const uvec2 keys = keys_of(heads[r]);
  uvec2 at = place_of_element(kind, keys, value_index(slot, head_dim, 0u));
  uvec2 scales = place_of_scale(keys, slot * blocks_of_head(head_dim), head_dim);
  float score = 0.0;
  for (uint begin = 0u; begin < head_dim; begin += kColumnsOfBlock) {
    const float scale = scale_at(kind, scales, 0u);
    const uint count = min(head_dim - begin, kColumnsOfBlock);
    uint i = 0u;
    for (; i + 8u <= count; i += 8u) {
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        const float element = scaled(kind, element_at(kind, at, k), scale);
        score = exact_fma(Floats(query).at[k], element, score);
      }
      at = advance(at, 8u * element_bytes(kind));
      query = advance(query, 32u);
    }
    for (; i < count; ++i) {
      const float element = scaled(kind, element_at(kind, at, 0u), scale);
      score = exact_fma(Floats(query).at[0], element, score);
      at = advance(at, element_bytes(kind));
      query = advance(query, 4u);
    }
    scales = advance(scales, 2u);
  }
  return exact_mul(score, PARAMS.scale);
}

// Finds the rows of the pages from `begin` on that fit, whose number is left in `taken`.
void take_rows(uint lane, uint begin, uvec2 mask) {
  const uint own = uint(bitCount(mask.x) + bitCount(mask.y));
  ends[lane] = own;
  if (lane == 0u) taken = kGroupSize;
  barrier();
  for (uint distance = 1u; distance < kGroupSize; distance *= 2u) {
    const uint before = lane >= distance ? ends[lane - distance] : 0u;
    barrier();
    ends[lane] += before;
    barrier();
  }
  const uint end = ends[lane];
  if (end > kGroupSize) atomicMin(taken, lane);
  barrier();
  if (lane < taken && own > 0u) {
    for (uint r = end - own; r < end; ++r) {
      const bool is_low = mask.x != 0u;
      const uint bit = is_low ? uint(findLSB(mask.x)) : uint(findLSB(mask.y)) + 32u;
      const RowPlace at = place_of_row(begin + lane, bit);
      rows[r] = (at.slot * kGroupSize + lane) * kPositionsOfPage + bit;
      heads[r] = at.head;
      if (is_low) {
        mask.x &= mask.x - 1u;
      } else {
        mask.y &= mask.y - 1u;
      }
    }
  }
  barrier();
}

// The sum of a page's rows [first, end), as sixteen lanes and a tree.
float sum_of_page(uint page, uint first, uint end) {
  const uint at = page * kTileRows;
  for (uint i = 0u; i < kTileRows; ++i) trees[at + i] = 0.0;
  for (uint r = first; r < end; ++r) {
    const uint place = at + rows[r] % kTileRows;
    trees[place] = exact_add(trees[place], p[r]);
  }
  for (uint half_count = kTileRows / 2u; half_count > 0u; half_count /= 2u) {
    for (uint i = at; i < at + half_count; ++i) {
      trees[i] = exact_add(trees[i], trees[i + half_count]);
    }
  }
  return trees[at];
}

// The maxima before each page, and after all of them.
void follow_maxima(HeadState state, uint pages) {
  bool has_maximum = state.sum != 0.0;  // a sum of a page is at least 1
  float maximum = state.maximum;
  first_page = kGroupSize;
  for (uint i = 0u; i < pages; ++i) {
    if (ends[i] == (i > 0u ? ends[i - 1u] : 0u)) continue;
    if (!has_maximum) first_page = i;
    maxima_before[i] = maximum;
    if (!has_maximum || maxima[i] > maximum) maximum = maxima[i];
    has_maximum = true;
  }
  last_maximum = maximum;
}

// Adds the weighted values of all `count` rows to the invocation's columns.
void add_values(uint kind, uint lane, uint count, inout float outputs[kColumnsMax]) {
  const uint head_dim = PARAMS.pages.head_dim, value_dim = PARAMS.pages.value_dim;
  for (uint i = 0u; i < kColumnsMax; ++i) {
    const uint column = i * kGroupSize + lane;
    if (column >= value_dim) break;
    float added = 0.0;
    // Loads of eight rows are in flight together.
    for (uint r = 0u; r < count; r += 8u) {
      float eight[8];
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        eight[k] = row_value(kind, min(r + k, count - 1u), column, head_dim);
      }
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        if (r + k >= count) break;
        const uint of = page_of_row(r + k);
        added = exact_fma(p[r + k], eight[k], added);
        if (r + k + 1u < ends[of]) continue;
        // The page's last row.
        const float merged =
            exact_fma(outputs[i], factors[of].before, exact_mul(added, factors[of].added));
        outputs[i] = of == first_page ? added : merged;
        added = 0.0;
      }
    }
  }
}

// Softens the scores of the `count` rows of `some` pages, and merges their maxima and sums.
void soften_pages(uint lane, uint some, uint count, inout HeadState state) {
  const uint first = lane > 0u ? ends[lane - 1u] : 0u, end = ends[lane];
  const bool has_rows = lane < some && first < end;
  if (has_rows) {
    float maximum = kLeast;
    for (uint r = first; r < end; ++r) maximum = larger(maximum, p[r]);
    maxima[lane] = maximum;
  }
  barrier();
  if (lane < count) p[lane] = exact_exp(exact_sub(p[lane], maxima[page_of_row(lane)]));
  barrier();
  if (has_rows) sums[lane] = sum_of_page(lane, first, end);
  if (lane == 0u) follow_maxima(state, some);
  barrier();
  if (has_rows) factors[lane] = factors_of(maxima_before[lane], maxima[lane]);
  barrier();
  for (uint i = 0u; i < some; ++i) {
    if (ends[i] == (i > 0u ? ends[i - 1u] : 0u)) continue;
    const float before = exact_mul(state.sum, factors[i].before);
    const float added = exact_mul(sums[i], factors[i].added);
    state.sum = i == first_page ? sums[i] : exact_add(before, added);
  }
  state.maximum = last_maximum;
}

void attend_rows() {
  const uint lane = gl_LocalInvocationIndex, head = gl_WorkGroupID.x, head_dim = PARAMS.pages.head_dim;
  token = gl_WorkGroupID.y;
  position = uint(Ints(PARAMS.positions).at[token]);
  list = Ints(advance(PARAMS.page_lists, uint(Ints(PARAMS.list_offsets).at[token]), 4u));
  const uint row = token * PARAMS.heads + head;
  const uvec2 query = advance(PARAMS.query, row, head_dim * 4u);
  const uint all_pages = page_count(), entry_pages = entry_page_count();
  uint page_begin = 0u, page_end = all_pages;
  if (kIsCut == 1u) {
    page_begin = PARAMS.page_begin;
    page_end = min(page_end, PARAMS.page_end);
    if (page_begin >= page_end) return;
  }
  float outputs[kColumnsMax];
  HeadState state = HeadState(0.0, 0.0);
  if (kIsCut == 1u && page_begin > 0u) resume_head(lane, row, state, outputs);
  for (uint begin = page_begin; begin < page_end;) {
    const bool are_entries = begin < entry_pages;
    const uint limit = are_entries ? min(entry_pages, page_end) : page_end;
    take_rows(lane, begin, begin + lane < limit ? rows_of_page(begin + lane) : uvec2(0u));
    const uint some = min(taken, limit - begin);  // pages
    const uint count = ends[some - 1u];
    if (lane < count && are_entries) p[lane] = score_of_row(kKvF32, lane, query, head_dim);
    if (lane < count && !are_entries) p[lane] = score_of_row(kKind, lane, query, head_dim);
    barrier();
    soften_pages(lane, some, count, state);
    if (are_entries) {
      add_values(kKvF32, lane, count, outputs);
    } else {
      add_values(kKind, lane, count, outputs);
    }
    barrier();
    begin += some;
  }
  if (kIsCut == 1u && page_end < all_pages) {
    barrier();
    leave_head(lane, row, state, outputs);
    return;
  }
  end_head(lane, row, head, state, outputs);
}

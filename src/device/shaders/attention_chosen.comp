#version 450
#extension GL_GOOGLE_include_directive : require
// Attention of one token and head over chosen positions (kernels/generic/chosen.inl): whole pages in
// ascending order, as many as have no more chosen positions together than there are invocations. An
// invocation scores one chosen position, then joins those of a page, then has columns of the values.
#include "common.glsl"
#include "pages.glsl"
layout(local_size_x = 64) in;
// 1: a dispatch takes some of the pages, from page_begin on.
layout(constant_id = 12) const uint kIsCut = 0u;
PARAMETERS(AttentionParams)
#include "attention.glsl"

// The pages that are taken together, each with the invocation of its number.
shared uint ends[kGroupSize];  // of its rows
shared float maxima[kGroupSize];
shared float maxima_before[kGroupSize];
shared float sums[kGroupSize];
shared Factors factors[kGroupSize];
shared float trees[kGroupSize * kTileRows];
// The chosen positions in them, which are rows.
shared uint rows[kGroupSize];    // page * kPositionsOfPage + slot
shared uvec2 heads[kGroupSize];  // where the values of its page begin
shared float p[kGroupSize];
shared uint taken;
shared uint first_page;  // the first of all that has rows, if it is among these
shared float last_maximum;

uvec2 mask_of(uint token, uint page, uint position) {
  if (position >= PARAMS.chosen) {
    Words words = Words(advance(PARAMS.mask, token, PARAMS.mask_words * 4u));
    return uvec2(words.at[2u * page], words.at[2u * page + 1u]);
  }
  const uint count = position + 1u - page * kPositionsOfPage;
  return uvec2(count >= 32u ? ~0u : (1u << count) - 1u,
               count >= 64u ? ~0u : count <= 32u ? 0u : (1u << (count - 32u)) - 1u);
}

// Element `column` of a row, times its scale.
float row_value(uint r, uint column, uint head_dim) {
  const uint slot = rows[r] % kPositionsOfPage;
  const uvec2 at = place_of_element(heads[r], value_index(slot, head_dim, column));
  const uint block = slot * blocks_of_head(head_dim) + column / kColumnsOfBlock;
  return scaled(element_at(at, 0u), scale_at(place_of_scale(heads[r], block, head_dim), 0u));
}

float score_of_row(uint r, uvec2 query, uint head_dim) {
  const uint slot = rows[r] % kPositionsOfPage;
  uvec2 at = place_of_element(heads[r], value_index(slot, head_dim, 0u));
  uvec2 scales = place_of_scale(heads[r], slot * blocks_of_head(head_dim), head_dim);
  float score = 0.0;
  for (uint begin = 0u; begin < head_dim; begin += kColumnsOfBlock) {
    const float scale = scale_at(scales, 0u);
    const uint count = min(head_dim - begin, kColumnsOfBlock);
    uint i = 0u;
    for (; i + 8u <= count; i += 8u) {
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        score = exact_fma(Floats(query).at[k], scaled(element_at(at, k), scale), score);
      }
      at = advance(at, 8u * kElementBytes);
      query = advance(query, 32u);
    }
    for (; i < count; ++i) {
      score = exact_fma(Floats(query).at[0], scaled(element_at(at, 0u), scale), score);
      at = advance(at, kElementBytes);
      query = advance(query, 4u);
    }
    scales = advance(scales, 2u);
  }
  return exact_mul(score, PARAMS.scale);
}

// Finds the rows of the pages from `begin` on that fit, whose number is left in `taken`.
void take_rows(uint lane, uint begin, uvec2 mask, Ints list, uint kv_head) {
  const PagesInfo pages = PARAMS.pages;
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
    const uvec2 head = place_of_head(pages.values, pages, uint(list.at[begin + lane]), kv_head);
    for (uint r = end - own; r < end; ++r) {
      const bool is_low = mask.x != 0u;
      const uint bit = uint(findLSB(is_low ? mask.x : mask.y));
      rows[r] = lane * kPositionsOfPage + bit + (is_low ? 0u : 32u);
      heads[r] = head;
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

void main() {
  const PagesInfo pages = PARAMS.pages;
  const uint lane = gl_LocalInvocationIndex, head = gl_WorkGroupID.x, token = gl_WorkGroupID.y;
  const uint head_dim = pages.head_dim, value_dim = pages.value_dim;
  const uint kv_head = (PARAMS.head_begin + head) / PARAMS.heads_per_kv - PARAMS.kv_begin;
  const uint row = token * PARAMS.heads + head;
  const uint position = uint(Ints(PARAMS.positions).at[token]);
  Ints list = Ints(advance(PARAMS.page_lists, uint(Ints(PARAMS.list_offsets).at[token]), 4u));
  const uvec2 query = advance(PARAMS.query, row, head_dim * 4u);
  const uint all_pages = position / kPositionsOfPage + 1u;
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
    const uint page = begin + lane;
    const uvec2 mask = page < page_end ? mask_of(token, page, position) : uvec2(0u);
    take_rows(lane, begin, mask, list, kv_head);
    const uint some = min(taken, page_end - begin);  // pages
    const uint count = ends[some - 1u];
    const uint first = lane > 0u ? ends[lane - 1u] : 0u, end = ends[lane];
    const bool has_rows = lane < some && first < end;
    if (lane < count) p[lane] = score_of_row(lane, query, head_dim);
    barrier();
    if (has_rows) {
      float maximum = kLeast;
      for (uint r = first; r < end; ++r) maximum = larger(maximum, p[r]);
      maxima[lane] = maximum;
    }
    barrier();
    if (lane < count) p[lane] = exact_exp(exact_sub(p[lane], maxima[rows[lane] / kPositionsOfPage]));
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
    for (uint i = 0u; i < kColumnsMax; ++i) {
      const uint column = i * kGroupSize + lane;
      if (column >= value_dim) break;
      float added = 0.0;
      // Loads of eight rows are in flight together.
      for (uint r = 0u; r < count; r += 8u) {
        float eight[8];
        [[unroll]] for (uint k = 0u; k < 8u; ++k) {
          eight[k] = row_value(min(r + k, count - 1u), column, head_dim);
        }
        [[unroll]] for (uint k = 0u; k < 8u; ++k) {
          if (r + k >= count) break;
          const uint of = rows[r + k] / kPositionsOfPage;
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

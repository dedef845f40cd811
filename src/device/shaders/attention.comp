#version 450
#extension GL_GOOGLE_include_directive : require
// Attention of one token and head over its pages in ascending order
// (kernels/generic/attention.inl). An invocation has one position of a page while it scores, and
// then columns of the values. A dispatch that does not reach the last page leaves its state.
#include "common.glsl"
#include "pages.glsl"
layout(local_size_x = 64) in;
// 1: a dispatch takes some of the pages, from page_begin on.
layout(constant_id = 12) const uint kIsCut = 0u;
// 1: the pages of a row are shared among workgroups, and each page's part stays for
// attention_merge.comp.
layout(constant_id = 11) const uint kIsSplit = 0u;
PARAMETERS(AttentionParams)
#include "attention.glsl"

shared float p[kPositionsOfPage];
shared float lanes[kTileRows];

// The largest of the first `count` positions, or their sum, as sixteen lanes and a tree.
float join_lanes(uint lane, uint count, bool is_sum) {
  if (lane < kTileRows) {
    float joined = is_sum ? 0.0 : kLeast;
    for (uint i = lane; i < count; i += kTileRows) {
      joined = is_sum ? exact_add(joined, p[i]) : larger(joined, p[i]);
    }
    lanes[lane] = joined;
  }
  barrier();
  for (uint half_count = kTileRows / 2u; half_count > 0u; half_count /= 2u) {
    if (lane < half_count) {
      const float other = lanes[lane + half_count];
      lanes[lane] = is_sum ? exact_add(lanes[lane], other) : larger(lanes[lane], other);
    }
    barrier();
  }
  const float result = lanes[0];
  barrier();
  return result;
}

float score_of(uvec2 keys, uvec2 query, uint position, uint head_dim) {
  uvec2 at = place_of_element(keys, key_index(position, head_dim, 0u));
  const uint first_scale = position / kTileRows * blocks_of_head(head_dim) * kTileRows;
  uvec2 scales = place_of_scale(keys, first_scale + position % kTileRows, head_dim);
  float score = 0.0;
  for (uint begin = 0u; begin < head_dim; begin += kColumnsOfBlock) {
    const float scale = scale_at(scales, 0u);
    const uint count = min(head_dim - begin, kColumnsOfBlock);
    uint i = 0u;
    for (; i + 8u <= count; i += 8u) {
      [[unroll]] for (uint k = 0u; k < 8u; ++k) {
        const float key = scaled(element_at(at, k * kTileRows), scale);
        score = exact_fma(Floats(query).at[k], key, score);
      }
      at = advance(at, 8u * kTileRows * kElementBytes);
      query = advance(query, 32u);
    }
    for (; i < count; ++i) {
      score = exact_fma(Floats(query).at[0], scaled(element_at(at, 0u), scale), score);
      at = advance(at, kTileRows * kElementBytes);
      query = advance(query, 4u);
    }
    scales = advance(scales, 2u * kTileRows);
  }
  return exact_mul(score, PARAMS.scale);
}

// A column of values, each multiplied with its position's p.
float value_of(uvec2 values, uint first, uint count, uint column, uint head_dim) {
  const uint blocks = blocks_of_head(head_dim), bytes = head_dim * kElementBytes;
  uvec2 at = place_of_element(values, value_index(first, head_dim, column));
  uvec2 scales = place_of_scale(values, first * blocks + column / kColumnsOfBlock, head_dim);
  float added = 0.0;
  uint k = first;
  for (; k + 8u <= count; k += 8u) {
    float eight[8];
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      eight[i] = scaled(element_at(at, 0u), scale_at(scales, 0u));
      at = advance(at, bytes);
      scales = advance(scales, 2u * blocks);
    }
    [[unroll]] for (uint i = 0u; i < 8u; ++i) added = exact_fma(p[k + i], eight[i], added);
  }
  for (; k < count; ++k) {
    added = exact_fma(p[k], scaled(element_at(at, 0u), scale_at(scales, 0u)), added);
    at = advance(at, bytes);
    scales = advance(scales, 2u * blocks);
  }
  return added;
}

void main() {
  const PagesInfo pages = PARAMS.pages;
  const uint lane = gl_LocalInvocationIndex, head = gl_WorkGroupID.x;
  const uint sharers = kIsSplit == 1u ? PARAMS.sharers : 1u;
  const uint token = gl_WorkGroupID.y / sharers, sharer = gl_WorkGroupID.y % sharers;
  const uint head_dim = pages.head_dim, value_dim = pages.value_dim;
  const uint kv_head = (PARAMS.head_begin + head) / PARAMS.heads_per_kv - PARAMS.kv_begin;
  const uint row = token * PARAMS.heads + head;
  const uint position = uint(Ints(PARAMS.positions).at[token]);
  Ints list = Ints(advance(PARAMS.page_lists, uint(Ints(PARAMS.list_offsets).at[token]), 4u));
  const uvec2 query = advance(PARAMS.query, row, head_dim * 4u);
  const PageRange range = pages_of(position);
  uint page_begin = range.first + sharer, page_end = range.end;
  if (kIsCut == 1u) {
    page_begin = max(page_begin, PARAMS.page_begin);
    page_end = min(page_end, PARAMS.page_end);
    if (page_begin >= page_end) return;
  }
  float outputs[kColumnsMax];
  HeadState state = HeadState(0.0, 0.0);
  if (kIsCut == 1u && page_begin > range.first) resume_head(lane, row, state, outputs);
  for (uint index = page_begin; index < page_end; index += sharers) {
    const uint begin = index * kPositionsOfPage;
    const uint first = begin < range.start ? range.start - begin : 0u;
    const uint count = min(position + 1u - begin, kPositionsOfPage);
    const uint page = uint(list.at[index]);
    const uvec2 keys = place_of_head(pages.keys, pages, page, kv_head);
    const uvec2 values = place_of_head(pages.values, pages, page, kv_head);
    const bool is_used = lane >= first && lane < count;
    const float score = is_used ? score_of(keys, query, lane, head_dim) : kLeast;
    p[lane] = score;
    barrier();
    const float maximum = join_lanes(lane, count, false);
    p[lane] = is_used ? exact_exp(exact_sub(score, maximum)) : 0.0;
    barrier();
    const float sum = join_lanes(lane, count, true);
    Floats part = Floats(place_of_part(row, index - range.first));
    Factors by = Factors(1.0, 1.0);
    const bool is_first = kIsSplit == 1u || index == range.first;
    if (kIsSplit == 1u) {
      if (lane == 0u) {
        part.at[value_dim] = maximum;
        part.at[value_dim + 1u] = sum;
      }
    } else if (is_first) {
      state = HeadState(maximum, sum);
    } else {
      by = factors_of(state.maximum, maximum);
      state.sum = exact_add(exact_mul(state.sum, by.before), exact_mul(sum, by.added));
      if (maximum > state.maximum) state.maximum = maximum;
    }
    for (uint i = 0u; i < kColumnsMax; ++i) {
      const uint column = i * kGroupSize + lane;
      if (column >= value_dim) break;
      const float added = value_of(values, first, count, column, head_dim);
      outputs[i] = is_first ? added : exact_fma(outputs[i], by.before, exact_mul(added, by.added));
      if (kIsSplit == 1u) part.at[column] = added;
    }
    barrier();
  }
  if (kIsSplit == 1u) return;
  if (kIsCut == 1u && page_end < range.end) {
    barrier();
    leave_head(lane, row, state, outputs);
    return;
  }
  end_head(lane, row, head, state, outputs);
}

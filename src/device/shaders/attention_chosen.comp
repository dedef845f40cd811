#version 450
#extension GL_GOOGLE_include_directive : require
// Attention of one token and head over chosen positions, or over all, which are the rows of a page
// (kernels/generic/chosen.inl).
#include "common.glsl"
#include "pages.glsl"
layout(local_size_x = 64) in;
// 1: keys have rows of their own.
layout(constant_id = 11) const uint kKeysAreRows = 0u;
#include "attention_rows.glsl"

uint page_count() { return position / kPositionsOfPage + 1u; }
uint entry_page_count() { return 0u; }

uvec2 rows_of_page(uint page) {
  if (PARAMS.chosen == 0u || position < PARAMS.chosen) {
    return lowest_bits(position + 1u - page * kPositionsOfPage);
  }
  Words words = Words(advance(PARAMS.mask, token, PARAMS.mask_words * 4u));
  return uvec2(words.at[2u * page], words.at[2u * page + 1u]);
}

RowPlace place_of_row(uint page, uint bit) {
  const PagesInfo pages = PARAMS.pages;
  const uint head = (PARAMS.head_begin + gl_WorkGroupID.x) / PARAMS.heads_per_kv - PARAMS.kv_begin;
  return RowPlace(place_of_head(pages.values, pages, uint(list.at[page]), head), bit);
}

uvec2 keys_of(uvec2 head) {
  if (kKeysAreRows == 0u) return head;
  const PagesInfo pages = PARAMS.pages;
  uint borrow, carry;
  const uint distance = usubBorrow(pages.keys.x, pages.values.x, borrow);
  const uint low = uaddCarry(head.x, distance, carry);
  return uvec2(low, head.y + pages.keys.y - pages.values.y - borrow + carry);
}

void main() { attend_rows(); }

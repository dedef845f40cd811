#version 450
#extension GL_GOOGLE_include_directive : require
// Attention of one token and head over entries, in blocks that count as pages, and then over the
// pages of a window (kernels/generic/compressed.inl).
#include "common.glsl"
#include "pages.glsl"
layout(local_size_x = 64) in;
#include "attention_rows.glsl"

uint entry_count() { return PARAMS.pool > 0u ? (position + 1u) / PARAMS.pool : 0u; }
uint entry_page_count() { return (entry_count() + kPositionsOfPage - 1u) / kPositionsOfPage; }
uint page_count() {
  const PageRange window = pages_of(position);
  return entry_page_count() + window.end - window.first;
}

uvec2 entries_of_page(uint page) {
  const uint count = entry_count();
  uvec2 entries = lowest_bits(count - page * kPositionsOfPage);
  if (PARAMS.chosen > 0u && count > PARAMS.chosen) {
    Words words = Words(advance(PARAMS.mask, token, PARAMS.mask_words * 4u));
    entries &= uvec2(words.at[2u * page], words.at[2u * page + 1u]);
  }
  return entries;
}

uvec2 rows_of_page(uint page) {
  if (page < entry_page_count()) return entries_of_page(page);
  const PageRange window = pages_of(position);
  const uint begin = (window.first + page - entry_page_count()) * kPositionsOfPage;
  const uint before = window.start > begin ? window.start - begin : 0u;
  return lowest_bits(position + 1u - begin) & ~lowest_bits(before);
}

RowPlace place_of_entry(uint entry) {
  const uint pool = PARAMS.pool, slots = pool < kPositionsOfPage ? kPositionsOfPage / pool : 1u;
  const uint offset = uint(Ints(PARAMS.entry_offsets).at[token]);
  const uint in_list = offset + ((entry + 1u) * pool - 1u) / kPositionsOfPage;
  const uint page = uint(Ints(PARAMS.page_lists).at[in_list]);
  return RowPlace(advance(PARAMS.entries, page, PARAMS.entries_page_bytes), entry % slots);
}

RowPlace place_of_row(uint page, uint bit) {
  if (page < entry_page_count()) return place_of_entry(page * kPositionsOfPage + bit);
  const PagesInfo pages = PARAMS.pages;
  const uint from = uint(list.at[pages_of(position).first + page - entry_page_count()]);
  return RowPlace(place_of_head(pages.values, pages, from, 0u), bit);
}

uvec2 keys_of(uvec2 head) { return head; }

void main() { attend_rows(); }

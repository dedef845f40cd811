// Latent attention between its products and attention: rotates the end of each query head into its
// place next to the absorbed query; norms the latent, rotates its end and stores it. The includer
// defines LATENT, the LatentParams.
#include "pages.glsl"
#include "row.glsl"

void rotate_query(uint lane, uint head, uint token) {
  const uint half_dims = LATENT.half_dims, index = token * LATENT.heads + head;
  Floats x = Floats(advance(LATENT.query, index, LATENT.x_stride * 4u));
  Floats y = Floats(advance(LATENT.absorbed, index, LATENT.y_stride * 4u));
  Floats table = Floats(advance(LATENT.table, token, 2u * half_dims * 4u));
  for (uint i = lane; i < half_dims; i += INVOCATIONS) {
    const float cosine = table.at[i], sine = table.at[half_dims + i];
    const float first = x.at[LATENT.x_offset + 2u * i];
    const float second = x.at[LATENT.x_offset + 2u * i + 1u];
    const uint to = LATENT.y_offset + 2u * i;
    y.at[to] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
    y.at[to + 1u] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
  }
}

void rotate_end(uint lane, uint token) {
  const uint half_dims = LATENT.half_dims;
  Floats table = Floats(advance(LATENT.table, token, 2u * half_dims * 4u));
  for (uint i = lane; i < half_dims; i += INVOCATIONS) {
    const float cosine = table.at[i], sine = table.at[half_dims + i];
    const uint at = LATENT.columns + 2u * i;
    const float first = row[at], second = row[at + 1u];
    row[at] = exact_sub(exact_mul(first, cosine), exact_mul(second, sine));
    row[at + 1u] = exact_add(exact_mul(second, cosine), exact_mul(first, sine));
  }
  barrier();
}

// Work of `number`: a head of the token, or its latent, which comes last.
void store_latent(uint lane, uint number, uint token) {
  const PagesInfo pages = LATENT.pages;
  if (number < LATENT.heads) {
    rotate_query(lane, number, token);
    return;
  }
  const uint head_dim = pages.head_dim;
  Floats latent = Floats(advance(LATENT.latent, token, head_dim * 4u));
  for (uint i = lane; i < head_dim; i += INVOCATIONS) row[i] = latent.at[i];
  barrier();
  norm_row(lane, LATENT.columns, LATENT.weight, LATENT.epsilon);
  rotate_end(lane, token);
  for (uint i = lane; i < head_dim; i += INVOCATIONS) latent.at[i] = row[i];
  const uint page = uint(Ints(LATENT.page).at[token]), slot = uint(Ints(LATENT.slot).at[token]);
  store_row(lane, head_dim, head_dim, place_of_head(pages.keys, pages, page, 0u), slot, false);
  store_row(lane, pages.value_dim, head_dim, place_of_head(pages.values, pages, page, 0u), slot,
            true);
}

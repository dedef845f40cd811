// Every operation with random shapes, strides and formats, for gpu_kernels_test.cc.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "device/gpu_compare.h"
#include "device/gpu_compressed_operations.h"
#include "device/gpu_ended_operations.h"
#include "device/gpu_gated_operations.h"
#include "device/gpu_recurrent_operations.h"
#include "device/gpu_sparse_operations.h"
#include "device/gpu_stream_operations.h"
#include "kernels/kernels.h"

namespace lockstep::testing {

inline std::vector<Output> matmul(Device& device, Random& random) {
  const int tokens = between(random, 1, 20);
  const Shape shape = random_shape(random);
  Matmul op{put_numbers(device, random, static_cast<size_t>(tokens * shape.columns)),
            tokens,
            {},
            between(random, 1, 3)};
  std::vector<Output> outputs;
  for (int i = 0; i < op.count; ++i) {
    Shape own = shape;
    if (i > 0) own.rows = between(random, 1, 40);
    const MatrixId id = pack_random(device, random, any_format(random), own);
    const auto count = static_cast<size_t>(subtrees_of(own.steps) * tokens * own.rows);
    op.products[i] = {id, put(device, std::vector<float>(count), Access::kHost)};
    outputs.push_back({op.products[i].output, count});
  }
  device.queue(op);
  return outputs;
}

inline std::vector<Output> head_matmul(Device& device, Random& random) {
  const int tokens = between(random, 1, 12), heads = between(random, 1, 6);
  const int columns = between(random, 1, 200);
  const Shape shape{between(random, 1, 50), columns, {{columns, 0, 1}}};
  const int input_stride = columns + between(random, 0, 9);
  const int output_stride = shape.rows + between(random, 0, 9);
  const FormatCase& format = any_format(random);
  const auto keeps = random();
  std::vector<MatrixId>& matrices = keep_forever<std::vector<MatrixId>>();
  for (int head = 0; head < heads; ++head) {
    const RandomMatrix stored(format, shape.rows, (columns + 511) / 512 * 512, random());
    matrices.push_back(packed(device, {.stored = stored.matrix,
                                       .rows = shape.rows,
                                       .columns = columns,
                                       .steps = shape.steps,
                                       .keeps_float_input = keeps % 4 == 0}));
  }
  const auto count = static_cast<size_t>(tokens * heads * output_stride);
  const Slice output = put(device, std::vector<float>(count), Access::kHost);
  device.queue(HeadMatmul{
      .matrices = &matrices,
      .input = put_numbers(device, random, static_cast<size_t>(tokens * heads * input_stride)),
      .input_stride = input_stride,
      .tokens = tokens,
      .output = output,
      .output_stride = output_stride});
  return {{output, count}};
}

inline std::vector<Output> experts(Device& device, Random& random) {
  const int tokens = between(random, 1, 12), all = between(random, 2, 6);
  const int chosen = between(random, 1, std::min(4, all));
  const int hidden = between(random, 1, 200), ffn = between(random, 1, 120);
  const Shape up_shape{ffn, hidden, {{hidden, 0, 1}}};
  const Shape down_shape{hidden, ffn, random_steps(random, ffn)};
  ExpertMatrices& matrices = keep_forever<ExpertMatrices>();
  matrices.gate = pack_experts(device, random, all, any_format(random), up_shape);
  matrices.up = pack_experts(device, random, all, any_format(random), up_shape);
  matrices.down = pack_experts(device, random, all, any_format(random), down_shape);
  const bool has_shared = random() % 2 == 0;
  const int shared_ffn = ffn;
  ExpertsUp up = random_experts_up(device, random, matrices, {tokens, chosen, hidden, ffn});
  up.output = room(device, static_cast<size_t>(tokens * chosen * ffn));
  up.has_shared = has_shared;
  up.activation = random_gate(random);
  up.limit = kGateLimit;
  if (random() % 2 == 0) {
    up.activation = Activation::kClampedSwiglu;
    up.has_bias = true;
    up.gate_bias = put_numbers(device, random, static_cast<size_t>(all * ffn));
    up.up_bias = put_numbers(device, random, static_cast<size_t>(all * ffn));
  }
  MatrixId shared_down{};
  if (has_shared) {
    const Shape shape{shared_ffn, hidden, {{hidden, 0, 1}}};
    up.shared = {.gate = pack_random(device, random, any_format(random), shape),
                 .up = pack_random(device, random, any_format(random), shape),
                 .input = up.input,
                 .tokens = tokens,
                 .scratch = room(device, static_cast<size_t>(tokens * shared_ffn)),
                 .output = room(device, static_cast<size_t>(tokens * shared_ffn))};
    shared_down = pack_random(device, random, any_format(random), down_shape);
  }
  const auto count = static_cast<size_t>(subtrees_of(down_shape.steps) * tokens * hidden);
  const Slice output = put(device, std::vector<float>(count), Access::kHost);
  const Slice biased =
      put_numbers(device, random, static_cast<size_t>(tokens * hidden), Access::kHost);
  const Slice bias = put_numbers(device, random, static_cast<size_t>(all * hidden));
  device.queue(up);
  device.queue(ExpertsDown{.matrices = &matrices,
                           .chosen = up.chosen,
                           .tokens = tokens,
                           .chosen_count = chosen,
                           .input = up.output,
                           .has_shared = has_shared,
                           .shared = shared_down,
                           .shared_input = up.shared.output,
                           .output = output});
  device.queue(AddExpertBias{.bias = bias,
                             .chosen = up.chosen,
                             .weights = up.weights,
                             .tokens = tokens,
                             .experts = all,
                             .chosen_count = chosen,
                             .columns = hidden,
                             .x = biased});
  return {{output, count}, {biased, static_cast<size_t>(tokens * hidden)}};
}

inline std::vector<Output> embed(Device& device, Random& random) {
  const Shape shape = random_shape(random);
  const MatrixId id = pack_random(device, random, any_format(random), shape);
  std::vector<int32_t> rows;
  for (int i = between(random, 1, 9); i > 0; --i)
    rows.push_back(between(random, -1, shape.rows - 1));
  const int stride = shape.columns + between(random, 0, 9);
  const size_t count = rows.size() * static_cast<size_t>(stride);
  const Slice output = put(device, std::vector<float>(count, 7.0f), Access::kHost);
  device.queue(Embed{.matrix = id,
                     .rows = put_ints(device, rows),
                     .tokens = static_cast<int>(rows.size()),
                     .output = output,
                     .output_stride = stride});
  return {{output, count}};
}

// Rows of a matrix in parts, mostly of one format.
inline std::vector<Output> embed_parts(Device& device, Random& random) {
  const Shape shape = random_shape(random);
  auto& parts = keep_forever<std::vector<MatrixId>>();
  const FormatCase& format = any_format(random);
  const bool is_mixed = random() % 4 == 0;
  for (int i = between(random, 1, 5); i > 0; --i) {
    parts.push_back(pack_random(device, random, is_mixed ? any_format(random) : format, shape));
  }
  std::vector<int32_t> rows;
  for (int i = between(random, 1, 9); i > 0; --i)
    rows.push_back(between(random, -1, shape.rows * static_cast<int>(parts.size()) - 1));
  const size_t count = rows.size() * static_cast<size_t>(shape.columns);
  const Slice output = put(device, std::vector<float>(count, 7.0f), Access::kHost);
  device.queue(Embed{.parts = &parts,
                     .rows = put_ints(device, rows),
                     .tokens = static_cast<int>(rows.size()),
                     .output = output});
  return {{output, count}};
}

inline std::vector<Output> norms(Device& device, Random& random) {
  const int tokens = between(random, 1, 5), columns = between(random, 1, 900);
  const int stride = columns + between(random, 0, 40);
  const auto count = static_cast<size_t>(tokens * columns);
  const auto strided = static_cast<size_t>(tokens * stride);
  const Slice weight = put_numbers(device, random, static_cast<size_t>(columns));
  const Slice x = put_numbers(device, random, strided);
  const Slice y = put(device, std::vector<float>(strided), Access::kHost);
  const Slice added = put_numbers(device, random, count);
  const Slice sum = put_numbers(device, random, count, Access::kHost);
  const Slice normed = room(device, count, Access::kHost);
  device.queue(RmsNorm{x, weight, tokens, columns, 1e-5f, y, stride});
  device.queue(RmsNorm{y, weight, tokens, columns, 1e-6f, y, stride});  // in place
  device.queue(AddRmsNorm{added, sum, weight, tokens, columns, 1e-6f, normed});
  return {{y, strided}, {sum, count}, {normed, count}};
}

// Norms of some heads of a token over all of them, the squares of which are gathered in between.
inline std::vector<Output> head_norms(Device& device, Random& random) {
  const int tokens = between(random, 1, 5), heads = between(random, 1, 6);
  const int head_dim = between(random, 1, 300), others = between(random, 0, 40);
  const int skipped = between(random, 0, heads - 1), stride = heads + others;
  const auto count = static_cast<size_t>(tokens * heads * head_dim);
  const auto squares_count = static_cast<size_t>(tokens * stride);
  const Slice x = put_numbers(device, random, count, Access::kHost);
  const Slice weight = put_numbers(device, random, static_cast<size_t>(heads * head_dim));
  const Slice squares = put(device, std::vector<float>(squares_count, 0.75f), Access::kHost);
  device.queue(HeadSquares{.x = {x.buffer, static_cast<size_t>(skipped * head_dim)},
                           .x_stride = heads * head_dim,
                           .tokens = tokens,
                           .heads = heads - skipped,
                           .head_dim = head_dim,
                           .output = {squares.buffer, static_cast<size_t>(others)},
                           .output_stride = stride});
  device.queue(NormHeads{.x = x,
                         .weight = weight,
                         .tokens = tokens,
                         .heads = heads,
                         .head_dim = head_dim,
                         .squares = squares,
                         .squares_stride = stride,
                         .all_heads = stride,
                         .epsilon = 1e-6f});
  return {{squares, squares_count}, {x, count}};
}

inline std::vector<Output> rotations(Device& device, Random& random) {
  const int tokens = between(random, 1, 5), heads = between(random, 1, 4);
  const int half = between(random, 1, 70), head_dim = 2 * half + between(random, 0, 10);
  const int x_offset = between(random, 0, 5), y_offset = between(random, 0, 5);
  const int x_stride = x_offset + head_dim, y_stride = y_offset + head_dim + 3;
  const Slice table = put_numbers(device, random, static_cast<size_t>(tokens * 2 * half));
  const auto count = static_cast<size_t>(tokens * heads * head_dim);
  const Slice x = put_numbers(device, random, count, Access::kHost);
  const Slice pairs = put_numbers(device, random, static_cast<size_t>(tokens * heads * x_stride));
  const auto rotated = static_cast<size_t>(tokens * heads * y_stride);
  const Slice y = put(device, std::vector<float>(rotated), Access::kHost);
  device.queue(Rope{x, table, tokens, heads, head_dim, half});
  device.queue(RotatePairs{pairs, x_stride, x_offset, table, tokens, heads, 2 * half, y, y_stride,
                           y_offset});
  return {{x, count}, {y, rotated}};
}

inline std::vector<Output> elementwise(Device& device, Random& random) {
  const int tokens = between(random, 1, 6), columns = between(random, 1, 300);
  const auto count = static_cast<size_t>(tokens * columns);
  const Slice x = put_numbers(device, random, count, Access::kHost);
  const Slice copied = room(device, count, Access::kHost);
  const int stride = columns + 5;
  const auto spread_count = static_cast<size_t>(tokens * stride);
  const Slice spread = put(device, std::vector<float>(spread_count), Access::kHost);
  std::vector<int32_t> rows;
  for (int i = 0; i < tokens; ++i) rows.push_back(between(random, 0, tokens - 1));
  device.queue(
      AddBias{x, put_numbers(device, random, static_cast<size_t>(columns)), tokens, columns});
  device.queue(
      ScaleRows{x, put_numbers(device, random, static_cast<size_t>(tokens)), tokens, columns});
  device.queue(Scale{x, put_numbers(device, random, 1), count});
  device.queue(Add{put_numbers(device, random, count), count, x});
  const Slice capped = put_numbers(device, random, count, Access::kHost);
  device.queue(Cap{capped, count, static_cast<float>(between(random, 1, 40)) / 8.0f});
  device.queue(CopyRows{x, put_ints(device, rows), tokens, columns, copied});
  device.queue(CopyColumns{x, tokens, columns, {spread.buffer, 2}, stride});
  const Slice wide = put_numbers(device, random, spread_count);
  const Slice taken = room(device, count, Access::kHost);
  device.queue(CopyColumns{{wide.buffer, 1}, tokens, columns, taken, columns, columns + 4});
  const Slice gathered = room(device, count, Access::kHost);
  device.queue(
      CopyRows{{spread.buffer, 2}, put_ints(device, rows), tokens, columns, gathered, stride});
  return {{x, count},      {copied, count}, {spread, spread_count},
          {capped, count}, {taken, count},  {gathered, count}};
}

// Keys and values of a sequence, then attention of some of its tokens, and products of that.
inline std::vector<Output> attention(Device& device, Random& random) {
  constexpr int kPages = 5;
  const auto kind = static_cast<KvKind>(between(random, 0, 3));
  const int kv_heads = between(random, 1, 3), heads_per_kv = between(random, 1, 4);
  const int head_dim = 4 * between(random, 1, 40);
  const bool has_blocks = head_dim >= 32 && random() % 2 == 0;
  const int value_dim =
      has_blocks ? 32 * between(random, 1, head_dim / 32) : between(random, 1, head_dim);
  const int positions = between(random, 1, kPages * kPagePositions);
  const PagesShape shape{kind, kv_heads, head_dim, value_dim};
  const size_t all = shape.page_elements() * kPages;
  // Garbage in slots beyond the position must not matter.
  const Slice state = put(device, std::vector<float>(all, 1e30f), Access::kHost);
  const LayerPages pages = shape.at(state);
  std::vector<int32_t> list(kPages);
  for (int i = 0; i < kPages; ++i) list[static_cast<size_t>(i)] = i;
  std::shuffle(list.begin(), list.end(), random);
  std::vector<int32_t> page, slot;
  for (int i = 0; i < positions; ++i) {
    page.push_back(list[static_cast<size_t>(i / kPagePositions)]);
    slot.push_back(i % kPagePositions);
  }
  const int keys_stride = kv_heads * head_dim + between(random, 0, 3);
  const int values_stride = kv_heads * value_dim + between(random, 0, 3);
  const auto stored = static_cast<size_t>(positions);
  device.queue(
      StoreKv{.pages = pages,
              .keys = put_numbers(device, random, stored * static_cast<size_t>(keys_stride)),
              .values = put_numbers(device, random, stored * static_cast<size_t>(values_stride)),
              .keys_stride = keys_stride,
              .values_stride = values_stride,
              .page = put_ints(device, page),
              .slot = put_ints(device, slot),
              .tokens = positions});
  const int tokens = between(random, 1, 4), heads = kv_heads * heads_per_kv;
  std::vector<int32_t> at, offsets(static_cast<size_t>(tokens), 0);
  for (int i = 0; i < tokens; ++i) at.push_back(between(random, 0, positions - 1));
  const int head_begin = heads_per_kv * between(random, 0, 2);
  const auto count = static_cast<size_t>(tokens * heads * value_dim);
  const Slice output = room(device, count, Access::kHost);
  Attention op{.pages = pages,
               .query = put_numbers(device, random, static_cast<size_t>(tokens * heads * head_dim)),
               .positions = put_ints(device, at),
               .page_lists = put_ints(device, list),
               .list_offsets = put_ints(device, offsets),
               .pages_reached = random() % 4 == 0 ? 0 : (positions - 1) / kPagePositions + 1,
               .tokens = tokens,
               .heads = heads,
               .head_begin = head_begin,
               .heads_per_kv = heads_per_kv,
               .kv_begin = head_begin / heads_per_kv,
               .window = random() % 2 == 0 ? 0 : between(random, 1, 150),
               .scale = 0.125f,
               .has_sinks = random() % 2 == 0,
               .output = output};
  op.sinks = put_numbers(device, random, static_cast<size_t>(heads));
  Output products{};
  const Operation product = multiply_heads(device, random, op, value_dim, products);
  device.queue(op);
  device.queue(product);
  return {{state, all}, {output, count}, products};
}

// The operations between products and attention, which become one kernel.
inline std::vector<Output> heads_and_store(Device& device, Random& random) {
  const int tokens = between(random, 1, 5), half = between(random, 1, 40);
  const int head_dim = 4 * ((2 * half + 3) / 4 + between(random, 0, 3));
  const int heads = between(random, 1, 5), kv_heads = between(random, 1, 3);
  const auto kind = static_cast<KvKind>(between(random, 0, 3));
  const PagesShape shape{kind, kv_heads, head_dim, head_dim};
  const Slice state = put(device, std::vector<float>(shape.page_elements()), Access::kHost);
  const LayerPages pages = shape.at(state);
  const auto query_count = static_cast<size_t>(tokens * heads * head_dim);
  const auto key_count = static_cast<size_t>(tokens * kv_heads * head_dim);
  const Slice query = put_numbers(device, random, query_count, Access::kHost);
  const Slice key = put_numbers(device, random, key_count, Access::kHost);
  const Slice value = put_numbers(device, random, key_count, Access::kHost);
  const Slice table = put_numbers(device, random, static_cast<size_t>(tokens * 2 * half));
  std::vector<int32_t> page(static_cast<size_t>(tokens), 0), slot;
  for (int i = 0; i < tokens; ++i) slot.push_back(7 * i);
  const Slice pages_of = put_ints(device, page), slots_of = put_ints(device, slot);
  const auto width = [&](int count) { return static_cast<size_t>(count * head_dim); };
  const Slice query_bias = put_numbers(device, random, width(heads));
  const Slice key_bias = put_numbers(device, random, width(kv_heads));
  const Slice value_bias = put_numbers(device, random, width(kv_heads));
  const Slice query_weight = put_numbers(device, random, width(1));
  const Slice key_weight = put_numbers(device, random, width(1));
  const Slice factors = put_numbers(device, random, static_cast<size_t>(tokens));
  const bool has_bias = random() % 2 == 0, has_norms = random() % 2 == 0;
  const auto norm_and_rotate = [&](Slice weight, Slice x, int count) {
    if (has_norms) device.queue(RmsNorm{x, weight, tokens * count, head_dim, 1e-6f, x, head_dim});
    device.queue(Rope{x, table, tokens, count, head_dim, half});
  };
  if (has_bias) {
    device.queue(AddBias{query, query_bias, tokens, heads * head_dim});
    device.queue(AddBias{key, key_bias, tokens, kv_heads * head_dim});
    device.queue(AddBias{value, value_bias, tokens, kv_heads * head_dim});
  }
  norm_and_rotate(query_weight, query, heads);
  norm_and_rotate(key_weight, key, kv_heads);
  if (random() % 2 == 0) device.queue(ScaleRows{query, factors, tokens, heads * head_dim});
  device.queue(StoreKv{.pages = pages,
                       .keys = key,
                       .values = value,
                       .keys_stride = kv_heads * head_dim,
                       .values_stride = kv_heads * head_dim,
                       .page = pages_of,
                       .slot = slots_of,
                       .tokens = tokens});
  return {
      {query, query_count}, {key, key_count}, {value, key_count}, {state, shape.page_elements()}};
}

// The same with latent attention.
inline std::vector<Output> latent_and_store(Device& device, Random& random) {
  const int tokens = between(random, 1, 4), heads = between(random, 1, 4);
  const int columns = 4 * between(random, 1, 60), dims = 4 * between(random, 1, 12);
  const int head_dim = columns + dims, nope = between(random, 1, 30);
  const auto kind = static_cast<KvKind>(between(random, 0, 3));
  const PagesShape shape{kind, 1, head_dim, columns};
  const Slice state = put(device, std::vector<float>(shape.page_elements()), Access::kHost);
  const LayerPages pages = shape.at(state);
  const auto absorbed_count = static_cast<size_t>(tokens * heads * head_dim);
  const auto latent_count = static_cast<size_t>(tokens * head_dim);
  const int stride = nope + dims;
  const Slice query = put_numbers(device, random, static_cast<size_t>(tokens * heads * stride));
  const Slice absorbed = put_numbers(device, random, absorbed_count, Access::kHost);
  const Slice latent = put_numbers(device, random, latent_count, Access::kHost);
  const Slice weight = put_numbers(device, random, static_cast<size_t>(columns));
  const Slice table = put_numbers(device, random, static_cast<size_t>(tokens * dims));
  std::vector<int32_t> slot;
  for (int i = 0; i < tokens; ++i) slot.push_back(15 * i);
  const Slice page = put_ints(device, std::vector<int32_t>(static_cast<size_t>(tokens), 0));
  const Slice slots = put_ints(device, slot);
  device.queue(
      RotatePairs{query, stride, nope, table, tokens, heads, dims, absorbed, head_dim, columns});
  device.queue(RmsNorm{latent, weight, tokens, columns, 1e-6f, latent, head_dim});
  device.queue(
      RotatePairs{latent, head_dim, columns, table, tokens, 1, dims, latent, head_dim, columns});
  device.queue(StoreKv{.pages = pages,
                       .keys = latent,
                       .values = latent,
                       .keys_stride = head_dim,
                       .values_stride = head_dim,
                       .page = page,
                       .slot = slots,
                       .tokens = tokens});
  return {{absorbed, absorbed_count}, {latent, latent_count}, {state, shape.page_elements()}};
}

inline std::vector<Output> biased_norm(Device& device, Random& random) {
  const int tokens = between(random, 1, 4), columns = between(random, 1, 500);
  const auto count = static_cast<size_t>(tokens * columns);
  const Slice sum = put_numbers(device, random, count, Access::kHost);
  const Slice y = room(device, count, Access::kHost);
  const Slice x = put_numbers(device, random, count);
  const Slice bias = put_numbers(device, random, static_cast<size_t>(columns));
  const Slice weight = put_numbers(device, random, static_cast<size_t>(columns));
  device.queue(Add{x, count, sum});
  device.queue(AddBias{sum, bias, tokens, columns});
  device.queue(RmsNorm{sum, weight, tokens, columns, 1e-5f, y});
  return {{sum, count}, {y, count}};
}

inline std::vector<Output> route(Device& device, Random& random) {
  const int tokens = between(random, 1, 4), groups = between(random, 1, 4);
  const int experts = groups * between(random, 4, 40);
  const int chosen = between(random, 1, std::min(8, experts / groups));
  const bool normalises = random() % 2 == 0;
  std::vector<float> scores = numbers(random, static_cast<size_t>(tokens * experts));
  for (float& score : scores) {
    if (random() % 8 == 0) score = scores[random() % scores.size()];  // equals
    // Scores of 0, by whose sum nothing is divided.
    if (!normalises && random() % 16 == 0)
      score = static_cast<float>(between(random, -1100, 1100)) / 12;
  }
  const auto slots = static_cast<size_t>(tokens * chosen);
  const Slice output = room(device, slots, Access::kHost);
  const Slice weights = room(device, slots, Access::kHost);
  Route op{.scores = put(device, scores),
           .tokens = tokens,
           .experts = experts,
           .chosen = chosen,
           .form = static_cast<RouterForm>(random() % 3),
           .has_given = random() % 3 == 0,
           .groups = groups,
           .chosen_groups = between(random, 1, groups),
           .normalises = normalises,
           .factor = 2.5f,
           .output = output,
           .weights = weights};
  op.bias = put_numbers(device, random, static_cast<size_t>(experts));
  const std::vector<int32_t> given = random_choices(random, tokens, chosen, experts);
  op.given = put(device, std::vector<float>(given.begin(), given.end()));
  op.has_scales = random() % 2 == 0;
  op.scales = put_numbers(device, random, static_cast<size_t>(experts));
  const Slice score_bias = put_numbers(device, random, static_cast<size_t>(experts));
  if (random() % 2 == 0) device.queue(AddBias{op.scores, score_bias, tokens, experts});
  device.queue(op);
  return {{output, slots}, {weights, slots}};
}

// Products of rows that the operation before them, or one further back, has made; some rows are
// changed in between.
inline std::vector<Output> norm_and_products(Device& device, Random& random) {
  const int tokens = between(random, 1, 12);
  const Shape shape = random_shape(random);
  const auto count = static_cast<size_t>(tokens * shape.columns);
  const auto width = static_cast<size_t>(shape.columns);
  const Slice sum = put_numbers(device, random, count, Access::kHost);
  const Slice y = room(device, count, Access::kHost);
  const int weights = between(random, 1, 3);
  const Slice x = put_numbers(device, random, count);
  const Slice weight = put_numbers(device, random, static_cast<size_t>(weights) * width);
  const Slice bias = put_numbers(device, random, width);
  const AddBias change{y, bias, tokens, shape.columns};
  std::vector<Output> outputs{{sum, count}, {y, count}};
  std::vector<Operation> operations;
  if (random() % 2 == 0) {
    operations.push_back(AddRmsNorm{x, sum, weight, tokens, shape.columns, 1e-6f, y});
  } else {
    operations.push_back(RmsNorm{x, weight, tokens, shape.columns, 1e-5f, y, 0, weights});
  }
  if (random() % 3 == 0) operations.push_back(change);
  for (int i = between(random, 1, 3); i > 0; --i) {
    const MatrixId id = pack_random(device, random, any_format(random), shape);
    const auto products = static_cast<size_t>(subtrees_of(shape.steps) * tokens * shape.rows);
    const Slice output = put(device, std::vector<float>(products), Access::kHost);
    operations.push_back(Matmul{y, tokens, {{id, output}}});
    outputs.push_back({output, products});
    if (random() % 4 == 0) operations.push_back(change);
  }
  for (const Operation& operation : operations) device.queue(operation);
  return outputs;
}

struct NamedCase {
  const char* name;
  Build build;
};
inline const NamedCase kCases[] = {
    {"matmul", matmul},
    {"gate and up", gated_up},
    {"activation", activate},
    {"heads", head_matmul},
    {"experts", experts},
    {"embed", embed},
    {"embed parts", embed_parts},
    {"norms", norms},
    {"head norms", head_norms},
    {"rotations", rotations},
    {"elementwise", elementwise},
    {"recurrent", recurrent},
    {"attention", attention},
    {"route", route},
    {"heads and store", heads_and_store},
    {"latent and store", latent_and_store},
    {"biased norm", biased_norm},
    {"norm and products", norm_and_products},
    {"gated feed-forward", gated_ffn},
    {"layer norm", layer_norm},
    {"sparse attention", sparse_attention},
    {"residual streams", residual_streams},
    {"gates of one sum", gates_of_one_sum},
    {"compressed attention", compressed_attention},
    {"matched streams", matched_streams},
    {"attention over rows", row_attention},
    {"ended feed-forward", ended_ffn},
    {"ended experts", ended_experts},
    {"ended heads", ended_heads},
    {"absorb", absorb},
};

}  // namespace lockstep::testing

// How the CPU runs the operations of sparse attention: the norm of the index's key, the scores of
// positions, and the choice of the best ones.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/choice.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/norm_lanes.h"

namespace lockstep {
namespace {

float sum_of(const float* x, size_t columns) {
  float lanes[kNormLanes] = {};
  for (size_t i = 0; i < columns; ++i) lanes[i % kNormLanes] += x[i];
  return sum_of_lanes(lanes);
}

}  // namespace

void CpuDevice::run(const LayerNorm& op) {
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  float* x = floats(op.x, tokens * columns);
  const float* bias = floats(op.bias, columns);
  RmsNormArgs args{.x = x,
                   .x_stride = columns,
                   .weight = floats(op.weight, columns),
                   .columns = op.columns,
                   .epsilon = op.epsilon,
                   .y = x,
                   .y_stride = columns};
  for (size_t token = 0; token < tokens; ++token) {
    float* row = x + token * columns;
    const float mean = sum_of(row, columns) / static_cast<float>(columns);
    for (size_t i = 0; i < columns; ++i) row[i] -= mean;
    args.token_begin = static_cast<int32_t>(token);
    args.token_end = args.token_begin + 1;
    kernels_.rms_norm(args);
    kernels_.add(bias, row, columns);
  }
}

void CpuDevice::run(const PoolKeys& op) {
  const auto tokens = static_cast<size_t>(op.tokens);
  const int columns = op.pools.head_dim;
  LOCKSTEP_CHECK(op.inputs.head_dim == 2 * columns && kPagePositions % op.pool == 0);
  const auto biases = static_cast<size_t>(op.pool) * static_cast<size_t>(columns);
  PoolKeyArgs args{.inputs = page_args(op.inputs),
                   .pools = page_args(op.pools),
                   .bias = floats(op.bias, biases),
                   .columns = columns,
                   .pool = op.pool};
  const int32_t* page = ints(op.page, tokens);
  const int32_t* slot = ints(op.slot, tokens);
  const size_t cost = 32 * static_cast<size_t>(columns);  // of a token: a part of them has a pool
  parallel(op.tokens, cost, [&](int begin, int end) {
    PoolKeyArgs own = args;
    for (auto token = static_cast<size_t>(begin); token < static_cast<size_t>(end); ++token) {
      if ((slot[token] + 1) % op.pool != 0) continue;
      own.page = page[token];
      own.slot = slot[token] / op.pool;
      kernels_.pool_key(own);
    }
  });
}

// A piece of work is some pages of a token.
void CpuDevice::run(const IndexScores& op) {
  constexpr int kPagesOfPiece = 8;
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), heads = static_cast<size_t>(op.heads);
  const size_t width = heads * static_cast<size_t>(op.pages.head_dim);
  const auto stride = static_cast<size_t>(op.stride);
  const PageArgs pages = page_args(op.pages);
  const float* query = floats(op.query, tokens * width);
  const float* weights = floats(op.weights, tokens * heads);
  const int32_t* positions = ints(op.positions, tokens);
  const int32_t* offsets = ints(op.list_offsets, tokens);
  const int32_t* lists = ints(op.page_lists, 0);
  float* scores = floats(op.scores, tokens * stride);
  const int most = *std::max_element(positions, positions + tokens);
  LOCKSTEP_CHECK(most / op.pool < op.stride);
  const int pieces = most / (kPagePositions * kPagesOfPiece) + 1;
  const size_t cost = width * kPagePositions * kPagesOfPiece;
  parallel(op.tokens * pieces, cost, [&](int begin, int end) {
    for (int item = begin; item < end; ++item) {
      const auto token = static_cast<size_t>(item / pieces);
      const int own = positions[token] / kPagePositions + 1;  // pages
      const int first = item % pieces * kPagesOfPiece;
      if (positions[token] < op.chosen || first >= own) continue;
      kernels_.index_scores({.pages = pages,
                             .page_list = lists + offsets[token],
                             .page_begin = first,
                             .page_end = std::min(own, first + kPagesOfPiece),
                             .query = query + token * width,
                             .weights = weights + token * heads,
                             .heads = op.heads,
                             .page_keys = kPagePositions / op.pool,
                             .scores = scores + token * stride});
    }
  });
}

void CpuDevice::run(const ChoosePositions& op) {
  if (op.tokens == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), stride = static_cast<size_t>(op.stride);
  const auto mask_words = static_cast<size_t>(op.mask_words);
  const float* scores = floats(op.scores, tokens * stride);
  const int32_t* positions = ints(op.positions, tokens);
  uint32_t* masks = words(op.mask, tokens * mask_words);
  const int most = *std::max_element(positions, positions + tokens);
  LOCKSTEP_CHECK(most / op.pool < op.stride && most < op.mask_words * 32);
  parallel(op.tokens, 8 * (static_cast<size_t>(most) + 1), [&](int begin, int end) {
    for (auto token = static_cast<size_t>(begin); token < static_cast<size_t>(end); ++token) {
      const int position = positions[token], complete = (position + 1) / op.pool;
      if (complete <= op.chosen / op.pool) continue;
      uint32_t* mask = masks + token * mask_words;
      choose_best({scores + token * stride, static_cast<size_t>(complete)}, op.chosen / op.pool,
                  mask);
      if (op.pool > 1) spread_pools(complete, op.pool, position, mask);
    }
  });
}

}  // namespace lockstep

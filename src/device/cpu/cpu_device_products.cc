// How the CPU multiplies: an operation prepares its input once for all of its matrices and is one
// section of the team, over pieces of all of them.
#include <algorithm>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace lockstep {
namespace {

// Prompt tokens multiplied with a piece while it is in the cache.
constexpr int kTokenBlock = 64;

}  // namespace

CpuDevice::Input CpuDevice::prepare(const Matrix& m, const float* input, size_t stride, int tokens,
                                    std::byte* to) {
  if (is_by_column(m.packed.codes)) return {input, stride * sizeof(float)};
  parallel(tokens, 4 * m.columns(), [&](int begin, int end) {
    prepare_rows(m, input, stride, {begin, end}, to);
  });
  return {to, m.input_bytes()};
}

void CpuDevice::prepare_rows(const Matrix& m, const float* input, size_t stride, IndexRange tokens,
                             std::byte* to) const {
  const auto run = m.packed.has_integer_input ? kernels_.prepare_integers : kernels_.prepare_floats;
  run({.input = input,
       .input_stride = stride,
       .blocks = m.layout->blocks.data(),
       .block_count = m.packed.block_count,
       .token_begin = tokens.begin,
       .token_end = tokens.end,
       .output = to});
}

size_t CpuDevice::Forms::add(const Matrix& m) {
  size_t i = 0;
  while (i < count && !matrices[i]->shares_input_with(m)) ++i;
  if (i < count) return i;
  LOCKSTEP_CHECK(count < kFormsMax);
  matrices[count] = &m;
  bytes += is_by_column(m.packed.codes) ? 0 : m.input_bytes();
  return count++;
}

void CpuDevice::prepare(Forms& forms, const float* input, size_t stride, int tokens) {
  std::byte* to = scratch_->data();
  for (size_t i = 0; i < forms.count; ++i) {
    const Matrix& m = *forms.matrices[i];
    LOCKSTEP_CHECK(m.columns() <= stride);
    forms.inputs[i] = prepare(m, input, stride, tokens, to);
    if (!is_by_column(m.packed.codes)) to += static_cast<size_t>(tokens) * m.input_bytes();
  }
}

int CpuDevice::piece_tiles(int tiles) const {
  int size = kPieceTilesMax;
  if (team_.size() == 1) return size;
  while (size > kPieceTilesMin && tiles / size < team_.size() * kPiecesPerThread) size /= 2;
  return size;
}

void CpuDevice::multiply(const Matrix& m, Input input, IndexRange tiles, int tokens, float* output,
                         size_t subtree_stride, const std::byte* next) const {
  for (int token = 0; token < tokens; token += kTokenBlock) {
    const auto from = static_cast<size_t>(token);
    const MatmulPart part = part_of(m, input.of(from), input.stride);
    kernels_.matmul({.parts = &part,
                     .part_count = 1,
                     .tile_begin = tiles.begin,
                     .tile_end = tiles.end,
                     .tokens = std::min(kTokenBlock, tokens - token),
                     .output = output + from * m.rows(),
                     .token_stride = m.rows(),
                     .subtree_stride = subtree_stride,
                     .next = next});
  }
}

void CpuDevice::run(const Matmul& op) {
  Forms forms;
  std::array<Multiplied, Matmul::kProductsMax> used;
  size_t count = 0;
  const auto tokens = static_cast<size_t>(op.tokens);
  for (int i = 0; i < op.count; ++i) {
    const Matrix& m = matrix(op.products[i].matrix);
    if (m.is_empty()) continue;  // a rank without a share of this matrix
    float* output = floats(op.products[i].output, m.layout->subtrees * tokens * m.rows());
    used[count++] = {&m, forms.add(m), output};
  }
  if (count == 0 || tokens == 0) return;
  const std::span<const Multiplied> products(used.data(), count);
  const size_t columns = products[0].matrix->columns();
  const float* input = floats(op.input, tokens * columns);
  const int round = forms.bytes == 0 ? op.tokens : tokens_in_scratch(forms.bytes);
  for (int begin = 0; begin < op.tokens; begin += round) {
    const int size = std::min(round, op.tokens - begin);
    prepare(forms, input + static_cast<size_t>(begin) * columns, columns, size);
    multiply(products, forms, {begin, begin + size}, tokens);
  }
}

void CpuDevice::multiply(std::span<const Multiplied> products, const Forms& forms, IndexRange round,
                         size_t all_tokens) {
  int tiles = 0;
  for (const Multiplied& of : products) tiles += of.matrix->tiles();
  const int size = piece_tiles(tiles);
  int pieces = 0;
  for (const Multiplied& of : products) pieces += of.matrix->piece_count(size);
  const size_t piece_cost = static_cast<size_t>(size * kLanes) * products[0].matrix->columns();
  const auto run_pieces = [&](int begin, int end) {
    for (const Multiplied& of : products) {
      const Matrix& m = *of.matrix;
      const int own = m.piece_count(size);
      if (begin < own && end > 0) {
        const IndexRange tiles = m.tiles_of({std::max(begin, 0), std::min(end, own)}, size);
        multiply(m, forms.inputs[of.form], tiles, round.size(),
                 of.output + static_cast<size_t>(round.begin) * m.rows(), all_tokens * m.rows());
      }
      begin -= own;  // from here on, pieces count from the next matrix
      end -= own;
    }
  };
  parallel(pieces, piece_cost * static_cast<size_t>(round.size()), chunks_for(round.size()),
           run_pieces);
}

void CpuDevice::run(const GatedUp& op) {
  const Matrix& gate = matrix(op.gate);
  if (gate.is_empty() || op.tokens == 0) return;
  Forms forms;
  const Gated gated = open_gated(op, forms);
  const auto tokens = static_cast<size_t>(op.tokens);
  const float* input = floats(op.input, tokens * gate.columns());
  const int round = forms.bytes == 0 ? op.tokens : tokens_in_scratch(forms.bytes);
  const int size = piece_tiles(gate.tiles());
  const size_t piece_cost = static_cast<size_t>(2 * size * kLanes) * gate.columns();
  for (int begin = 0; begin < op.tokens; begin += round) {
    const int count = std::min(round, op.tokens - begin);
    prepare(forms, input + static_cast<size_t>(begin) * gate.columns(), gate.columns(), count);
    parallel(gate.piece_count(size), piece_cost * static_cast<size_t>(count), chunks_for(count),
             [&](int from, int to) {
               run_gated(gated, forms, gate.tiles_of({from, to}, size), {begin, begin + count});
             });
  }
}

CpuDevice::Gated CpuDevice::open_gated(const GatedUp& op, Forms& forms) {
  const Matrix &gate = matrix(op.gate), &up = matrix(op.up);
  LOCKSTEP_CHECK(gate.rows() == up.rows() && gate.columns() == up.columns());
  const size_t count = static_cast<size_t>(op.tokens) * gate.rows();
  return {{&gate, forms.add(gate), floats(op.output, count)},
          {&up, forms.add(up), floats(op.scratch, count)},
          op.activation,
          op.limit};
}

void CpuDevice::run_gated(const Gated& of, const Forms& forms, IndexRange tiles,
                          IndexRange tokens) const {
  const size_t rows = of.gate.matrix->rows();
  const size_t skipped = static_cast<size_t>(tokens.begin) * rows;
  const auto multiply_part = [&](const Multiplied& part, const std::byte* next) {
    multiply(*part.matrix, forms.inputs[part.form], tiles, tokens.size(), part.output + skipped, 0,
             next);
  };
  multiply_part(of.gate, of.up.matrix->tile(tiles.begin));
  multiply_part(of.up, of.gate.matrix->tile_if_any(tiles.end));
  const auto begin = static_cast<size_t>(tiles.begin) * kLanes;
  const size_t end = std::min(rows, static_cast<size_t>(tiles.end) * kLanes);
  for (auto token = static_cast<size_t>(tokens.begin); token < static_cast<size_t>(tokens.end);
       ++token) {
    float* gate = of.gate.output + token * rows + begin;
    join(of.activation, of.limit, gate, of.up.output + token * rows + begin, end - begin);
  }
}

void CpuDevice::run(const Activate& op) {
  if (op.tokens == 0 || op.columns == 0) return;
  const auto tokens = static_cast<size_t>(op.tokens), columns = static_cast<size_t>(op.columns);
  const auto stride = static_cast<size_t>(op.up_stride);
  LOCKSTEP_CHECK(!has_limit(op.activation) && columns <= stride);
  float* gate = floats(op.gate, tokens * columns);
  float* up = floats(op.up, (tokens - 1) * stride + columns);
  constexpr size_t kColumnsMost = 256, kCost = 16;  // of one column
  in_columns(tokens, columns, kColumnsMost, kCost, [&](size_t token, size_t first, size_t count) {
    join(op.activation, 0, gate + token * columns + first, up + token * stride + first, count);
  });
}

// gelu(g) by tanh is g * sigmoid(2 k (g + 0.044715 g^3)), so with c = 2 k (1 + 0.044715 g^2) it is
// silu(g c) / c.
void CpuDevice::join(Activation activation, float limit, float* gate, float* up,
                     size_t count) const {
  if (activation == Activation::kClampedSwiglu) {
    kernels_.clamped_swiglu(gate, up, limit, gate, count);
    return;
  }
  if (activation == Activation::kSigmoidMul) {
    kernels_.sigmoid(gate, gate, count);
    for (size_t i = 0; i < count; ++i) gate[i] *= up[i];
    return;
  }
  if (activation == Activation::kGeluMul) {
    for (size_t i = 0; i < count; ++i) {
      const float c = kGeluSlope + kGeluSquare * (gate[i] * gate[i]);
      gate[i] *= c;
      up[i] /= c;
    }
  }
  if (activation == Activation::kClippedSiluMul) {
    for (size_t i = 0; i < count; ++i) {
      gate[i] = limit < gate[i] ? limit : gate[i];
      up[i] = limit < up[i] ? limit : up[i];
      up[i] = up[i] < -limit ? -limit : up[i];
    }
  }
  kernels_.silu_mul(gate, up, gate, count);
}

}  // namespace lockstep

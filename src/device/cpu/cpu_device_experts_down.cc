// How the CPU multiplies with the down matrices of a layer's experts: one sum for each token, over
// its experts and the shared one.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "base/check.h"
#include "device/cpu/cpu_device.h"

namespace lockstep {
namespace {

// With fewer tokens for each expert, one token at a time is faster: its sums stay in registers.
constexpr size_t kTokensOfRunLeast = 3;

}  // namespace

// Some tokens of an operation.
struct CpuDevice::ExpertsDownRound {
  const Matrix& first;
  size_t chosen_count;
  size_t tokens;
  const int32_t* chosen;
  const float* input;         // (tokens, chosen_count, columns)
  const Matrix* shared;       // nullptr: there is none
  const float* shared_input;  // (tokens, columns of `shared`)
  float* output;
  size_t subtree_stride;

  size_t slots() const { return tokens * chosen_count; }
  size_t row_bytes() const { return slots() * first.input_bytes(); }
};

void CpuDevice::run(const ExpertsDown& op) {
  const Matrix& first = matrix(op.matrices->down[0]);
  if (first.is_empty() || op.tokens == 0) return;
  LOCKSTEP_CHECK(op.chosen_count < kMatmulPartsMax);
  const Matrix* shared = op.has_shared ? &matrix(op.shared) : nullptr;
  const auto chosen_count = static_cast<size_t>(op.chosen_count);
  const auto all = static_cast<size_t>(op.tokens);
  const int32_t* chosen = ints(op.chosen, all * chosen_count);
  const float* input = floats(op.input, all * chosen_count * first.columns());
  const float* shared_input = shared ? floats(op.shared_input, all * shared->columns()) : nullptr;
  float* output = floats(op.output, first.layout->subtrees * all * first.rows());
  const int most =
      tokens_in_scratch(first.input_bytes() * chosen_count + (shared ? shared->input_bytes() : 0));
  const auto round = static_cast<size_t>(std::min(most, kMatmulRunTokensMax));
  for (size_t begin = 0; begin < all; begin += round) {
    const size_t tokens = std::min(round, all - begin);
    const ExpertsDownRound some{
        .first = first,
        .chosen_count = chosen_count,
        .tokens = tokens,
        .chosen = chosen + begin * chosen_count,
        .input = input + begin * chosen_count * first.columns(),
        .shared = shared,
        .shared_input = shared ? shared_input + begin * shared->columns() : nullptr,
        .output = output + begin * first.rows(),
        .subtree_stride = all * first.rows()};
    sort_into_long_runs(op, some) ? run_down_by_expert(op, some) : run_down_by_token(op, some);
  }
}

// Whether experts have enough tokens each to go through expert by expert; then they are in
// expert_order_.
bool CpuDevice::sort_into_long_runs(const ExpertsDown& op, const ExpertsDownRound& round) {
  if (round.tokens < kTokensOfRunLeast) return false;
  expert_order_.sort({round.chosen, round.slots()}, static_cast<int>(op.matrices->down.size()));
  const size_t runs = expert_order_.runs().size();
  return round.slots() >= kTokensOfRunLeast * runs &&
         runs < kMatmulRunsMax;  // with the shared expert's
}

// One token at a time; all tokens go through a few tiles of all experts while these are in the
// cache.
void CpuDevice::run_down_by_token(const ExpertsDown& op, const ExpertsDownRound& round) {
  const Matrix& first = round.first;
  const auto tokens = static_cast<int>(round.tokens);
  const Input rows = prepare(first, round.input, first.columns(), static_cast<int>(round.slots()),
                             scratch_->data());
  Input shared_rows{};
  if (round.shared != nullptr) {
    shared_rows = prepare(*round.shared, round.shared_input, round.shared->columns(), tokens,
                          scratch_->data() + round.row_bytes());
  }
  const int size = piece_tiles(tokens * first.tiles());
  const int piece_count = tokens * first.piece_count(size);
  const auto expert_of_slot = [&](size_t slot) -> const Matrix& {
    return matrix(op.matrices->down[static_cast<size_t>(round.chosen[slot])]);
  };
  const auto first_tile_of_piece = [&](int piece) -> const std::byte* {
    if (piece == piece_count) return nullptr;
    const auto token = static_cast<size_t>(piece % tokens);
    return expert_of_slot(token * round.chosen_count).tile(piece / tokens * size);
  };
  const auto run_piece = [&](int piece) {
    const auto token = static_cast<size_t>(piece % tokens);
    std::array<MatmulPart, kMatmulPartsMax> parts;
    size_t count = 0;
    for (size_t i = token * round.chosen_count; i < (token + 1) * round.chosen_count; ++i) {
      parts[count++] = part_of(expert_of_slot(i), rows.of(i), 0);
    }
    if (round.shared != nullptr) parts[count++] = part_of(*round.shared, shared_rows.of(token), 0);
    const IndexRange tiles = first.tiles_of({piece / tokens, piece / tokens + 1}, size);
    kernels_.matmul({.parts = parts.data(),
                     .part_count = static_cast<int32_t>(count),
                     .tile_begin = tiles.begin,
                     .tile_end = tiles.end,
                     .tokens = 1,
                     .output = round.output + token * first.rows(),
                     .token_stride = first.rows(),
                     .subtree_stride = round.subtree_stride,
                     .next = first_tile_of_piece(piece + 1)});
  };
  pieces(piece_count, static_cast<size_t>(size * kLanes) * first.columns() * round.chosen_count,
         chunks_for(tokens), run_piece);
}

// All tokens of an expert together.
void CpuDevice::run_down_by_expert(const ExpertsDown& op, const ExpertsDownRound& round) {
  const Matrix& first = round.first;
  const auto tokens = static_cast<int>(round.tokens);
  const Input rows = prepare_slots(first, round.input, scratch_->data());
  down_runs_.clear();
  down_tokens_.resize(round.slots() + round.tokens);
  for (size_t i = 0; i < round.slots(); ++i) {
    down_tokens_[i] = expert_order_.slots()[i] / static_cast<int32_t>(round.chosen_count);
  }
  for (const ExpertOrder::Run& run : expert_order_.runs()) {
    const Matrix& m = matrix(op.matrices->down[static_cast<size_t>(run.expert)]);
    down_runs_.push_back({part_of(m, rows.of(run.begin), rows.stride),
                          down_tokens_.data() + run.begin, static_cast<int32_t>(run.size())});
  }
  if (round.shared != nullptr) {
    const Input shared_rows = prepare(*round.shared, round.shared_input, round.shared->columns(),
                                      tokens, scratch_->data() + round.row_bytes());
    int32_t* const own = down_tokens_.data() + round.slots();
    std::iota(own, own + tokens, 0);
    down_runs_.push_back(
        {part_of(*round.shared, shared_rows.data, shared_rows.stride), own, tokens});
  }
  const int size = piece_tiles(first.tiles());
  const size_t cost = static_cast<size_t>(size * kLanes) * first.columns() * round.slots();
  pieces(first.piece_count(size), cost, Chunks::kEqual, [&](int piece) {
    const IndexRange tiles = first.tiles_of({piece, piece + 1}, size);
    kernels_.matmul_runs({.runs = down_runs_.data(),
                          .run_count = static_cast<int32_t>(down_runs_.size()),
                          .tile_begin = tiles.begin,
                          .tile_end = tiles.end,
                          .tokens = tokens,
                          .output = round.output,
                          .token_stride = first.rows(),
                          .subtree_stride = round.subtree_stride});
  });
}

// Prepares the input of each slot, in the order of the experts.
CpuDevice::Input CpuDevice::prepare_slots(const Matrix& m, const float* input, std::byte* to) {
  const std::span<const int32_t> slots = expert_order_.slots();
  const size_t bytes = m.input_bytes();
  parallel(static_cast<int>(slots.size()), 4 * m.columns(), [&](int begin, int end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const float* const row = input + static_cast<size_t>(slots[i]) * m.columns();
      if (is_by_column(m.packed.codes)) {
        std::memcpy(to + i * bytes, row, bytes);
      } else {
        prepare_rows(m, row, m.columns(), {0, 1}, to + i * bytes);
      }
    }
  });
  return {to, bytes};
}

}  // namespace lockstep

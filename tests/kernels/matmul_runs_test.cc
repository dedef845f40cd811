// Products whose tokens have different parts, against those of each token alone.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "kernels/answers/sample_quantised.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

constexpr int kRows = 16 * 5 + 3;
constexpr int kRuns = 4;
constexpr int kTokens = 37;
constexpr int kTiles = (kRows + kLanes - 1) / kLanes;

// Tokens of a run: of the first all, of each further one fewer, and of the last none.
bool has_token(int run, int token) {
  if (run == kRuns - 1) return false;
  return run == 0 || (token * 7 + run) % (run + 1) == 0;
}

// A matrix with its input of all tokens, and the rows of its own tokens one after the other.
struct Run {
  PackedMatrix view;
  std::vector<std::byte> all;
  std::vector<std::byte> own;
  std::vector<int32_t> tokens;
  size_t stride;

  Run(int number, const PackedMatrix& matrix, const void* input, size_t input_stride)
      : view(matrix), all(input_stride * kTokens), stride(input_stride) {
    std::memcpy(all.data(), input, all.size());
    for (int token = 0; token < kTokens; ++token) {
      if (!has_token(number, token)) continue;
      tokens.push_back(token);
      own.insert(own.end(), row(token), row(token) + stride);
    }
  }
  const std::byte* row(int token) const { return all.data() + static_cast<size_t>(token) * stride; }
};

struct Strides {
  size_t token = kRows + 3;
  size_t subtree = (kRows + 3) * kTokens + 1;
};

std::vector<float> by_token(const KernelTable& table, const std::vector<Run>& runs, int subtrees) {
  const Strides strides;
  std::vector<float> output(static_cast<size_t>(subtrees) * strides.subtree, kUntouched);
  for (int token = 0; token < kTokens; ++token) {
    std::vector<MatmulPart> parts;
    for (int run = 0; run < kRuns; ++run) {
      const Run& of = runs[static_cast<size_t>(run)];
      if (has_token(run, token)) parts.push_back({&of.view, of.row(token), of.stride});
    }
    table.matmul({parts.data(), static_cast<int32_t>(parts.size()), 0, kTiles, 1,
                  output.data() + static_cast<size_t>(token) * strides.token, strides.token,
                  strides.subtree});
  }
  return output;
}

std::vector<float> by_run(const KernelTable& table, const std::vector<Run>& runs, int subtrees,
                          int tiles_at_once) {
  const Strides strides;
  std::vector<float> output(static_cast<size_t>(subtrees) * strides.subtree, kUntouched);
  std::vector<MatmulRun> all;
  for (const Run& run : runs) {
    all.push_back({{&run.view, run.own.data(), run.stride},
                   run.tokens.data(),
                   static_cast<int32_t>(run.tokens.size())});
  }
  for (int tile = 0; tile < kTiles; tile += tiles_at_once) {
    table.matmul_runs({all.data(), kRuns, tile, std::min(kTiles, tile + tiles_at_once), kTokens,
                       output.data(), strides.token, strides.subtree});
  }
  return output;
}

}  // namespace

TEST_CASE("tokens with different parts get the bits that each gets alone") {
  const SamplePlan plan = plan_of({{32, 64, 7}, {100}});
  SampleRandom random(3);
  const MatrixByColumn plain =
      random_matrix(random, PackedCodes::kBF16, kRows, plan.columns, SampleKind::kPlain);
  const std::vector<float> input =
      random.units(static_cast<size_t>(plan.columns) * static_cast<size_t>(kTokens));
  for (const QuantisedFormat& format : kQuantisedFormats) {
    CAPTURE(static_cast<int>(format.codes));
    CAPTURE(static_cast<int>(format.scales));
    std::vector<QuantisedMatrix> matrices;
    for (int i = 0; i + 1 < kRuns; ++i) matrices.emplace_back(random, format, kRows, plan.steps);
    for (const KernelTable* table : available_kernels()) {
      CAPTURE(std::string(table->name));
      std::vector<Run> runs;
      for (const QuantisedMatrix& matrix : matrices) {
        const PreparedInput prepared = prepare_input(*table, matrix, input, kTokens);
        runs.emplace_back(static_cast<int>(runs.size()), matrix.view(), prepared.token(0),
                          prepared.stride);
        if (runs.size() > 1) continue;
        // The second one, so that quantised parts come before and after it.
        runs.emplace_back(1, plain.view(plan.steps), input.data(),
                          static_cast<size_t>(plan.columns) * sizeof(float));
      }
      const std::vector<float> expected = by_token(*table, runs, plan.subtrees);
      REQUIRE(first_difference(by_run(*table, runs, plan.subtrees, kTiles), expected) == -1);
      REQUIRE(first_difference(by_run(*table, runs, plan.subtrees, 1), expected) == -1);
      REQUIRE(first_difference(by_run(*table, runs, plan.subtrees, 3), expected) == -1);
    }
  }
}

}  // namespace lockstep

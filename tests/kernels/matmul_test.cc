#include <doctest/doctest.h>

#include <algorithm>

#include "kernels/definition.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

struct Problem {
  MatrixByColumn matrix;
  SamplePlan plan;
  int tokens;
  std::vector<float> input;

  size_t rows() const { return static_cast<size_t>(matrix.rows); }
  size_t input_stride() const { return static_cast<size_t>(plan.columns) + 3; }
  size_t token_stride() const { return rows() + 5; }
  size_t subtree_stride() const { return static_cast<size_t>(tokens) * token_stride() + 7; }
  const float* input_of(int token) const {
    return input.data() + static_cast<size_t>(token) * input_stride();
  }
  std::vector<float> empty_output() const {
    return std::vector<float>(static_cast<size_t>(plan.subtrees) * subtree_stride(), kUntouched);
  }
};

Problem random_problem(uint64_t seed, PackedCodes type, int rows, const SamplePlan& plan,
                       int tokens, SampleKind kind) {
  SampleRandom random(seed);
  Problem problem = {random_matrix(random, type, rows, plan.columns, kind), plan, tokens, {}};
  problem.input.resize(problem.input_stride() * static_cast<size_t>(tokens));
  for (float& value : problem.input) value = draw(random, kind);
  return problem;
}

void run(const KernelTable& table, const Problem& problem, int tile_begin, int tile_end,
         int token_begin, int token_end, std::vector<float>& output) {
  const PackedMatrix matrix = problem.matrix.view(problem.plan.steps);
  const MatmulPart part = {
      .matrix = &matrix,
      .input = problem.input.data() + static_cast<size_t>(token_begin) * problem.input_stride(),
      .input_stride = problem.input_stride() * sizeof(float),
  };
  table.matmul({
      .parts = &part,
      .part_count = 1,
      .tile_begin = tile_begin,
      .tile_end = tile_end,
      .tokens = token_end - token_begin,
      .output = output.data() + static_cast<size_t>(token_begin) * problem.token_stride(),
      .token_stride = problem.token_stride(),
      .subtree_stride = problem.subtree_stride(),
  });
}

std::vector<float> run_whole(const KernelTable& table, const Problem& problem) {
  std::vector<float> output = problem.empty_output();
  run(table, problem, 0, problem.matrix.tiles(), 0, problem.tokens, output);
  return output;
}

struct Reference {
  double exact;      // the sum in double precision
  double magnitude;  // sum of |weight * input|
};

Reference reference(const Problem& problem, int subtree, int token, int row) {
  double exact = 0;
  double magnitude = 0;
  int column = 0;
  for (const LeafStep& step : problem.plan.steps) {
    for (int end = column + step.columns; column < end; ++column) {
      const double product =
          double{problem.matrix.at(row, column)} * double{problem.input_of(token)[column]};
      exact += product;
      magnitude += std::fabs(product);
    }
    if (step.ends_subtree == 0) continue;
    if (subtree == 0) return {exact, magnitude};
    --subtree;
    exact = magnitude = 0;
  }
  return {NAN, NAN};
}

// The outputs of a row, by subtree, as the definition has them, if each leaf's columns belong to
// several matrices: parts[matrix][leaf] of them, one matrix after the other.
std::vector<float> defined(const Problem& problem, const std::vector<std::vector<int>>& parts,
                           int token, int row) {
  const float* x = problem.input_of(token);
  size_t leaf = 0;
  return definition::add_leaves(problem.plan.steps, [&](const LeafStep&, int column) {
    float sum = 0.0f;
    for (const std::vector<int>& part : parts) {
      const int begin = column;
      column += part[leaf];
      sum = definition::add_plain_leaf(
          sum, begin, column, [&](int c) { return problem.matrix.at(row, c); },
          [&](int c) { return x[c]; });
    }
    ++leaf;
    return sum;
  });
}

// The same for one matrix.
std::vector<float> defined(const Problem& problem, int token, int row) {
  std::vector<int> columns;
  for (const LeafStep& step : problem.plan.steps) columns.push_back(step.columns);
  return defined(problem, {columns}, token, row);
}

std::vector<SamplePlan> step_plans() {
  return {
      plan_of({{1}}),
      plan_of({{33}}),
      plan_of({{5, 7, 4}}),
      plan_of({{3}, {2, 2}, {1, 1, 1, 1}}),
      plan_of({std::vector<int>(64, 2)}),
      plan_of({std::vector<int>(63, 1), {16}}),
      plan_of({{256}, {257, 20}, {700}}),
  };
}

}  // namespace

TEST_CASE("scalar matmul does what the definition says and writes nothing else") {
  for (PackedCodes type : kCodesByColumn) {
    for (const SamplePlan& plan : step_plans()) {
      for (int rows : {1, 16, 37}) {
        const Problem problem = random_problem(7, type, rows, plan, 3, SampleKind::kNasty);
        const std::vector<float> output = run_whole(scalar_kernels(), problem);
        std::vector<float> expected = problem.empty_output();
        for (int token = 0; token < problem.tokens; ++token) {
          for (int row = 0; row < rows; ++row) {
            size_t at =
                static_cast<size_t>(token) * problem.token_stride() + static_cast<size_t>(row);
            for (const float value : defined(problem, token, row)) {
              expected[at] = value;
              at += problem.subtree_stride();
            }
          }
        }
        CHECK(first_difference(output, expected) == -1);
      }
    }
  }
}

TEST_CASE("scalar matmul is within the error bound of its sums") {
  for (PackedCodes type : kCodesByColumn) {
    for (SampleKind kind : {SampleKind::kPlain, SampleKind::kNasty}) {
      const SamplePlan plan = plan_of({{100, 60, 40}, {300}});
      const Problem problem = random_problem(11, type, 40, plan, 2, kind);
      const std::vector<float> output = run_whole(scalar_kernels(), problem);
      for (int subtree = 0; subtree < plan.subtrees; ++subtree) {
        for (int token = 0; token < problem.tokens; ++token) {
          for (int row = 0; row < problem.matrix.rows; ++row) {
            const Reference r = reference(problem, subtree, token, row);
            const float value = output[static_cast<size_t>(subtree) * problem.subtree_stride() +
                                       static_cast<size_t>(token) * problem.token_stride() +
                                       static_cast<size_t>(row)];
            // n roundings of a sum cost at most n * u / (1 - n * u) of the sum of magnitudes, and
            // an operation with a subnormal result at most 2^-150 more; n is at most 302 here.
            const double bound = r.magnitude * 310 * 0x1p-24 + 310 * 0x1p-150;
            REQUIRE(std::fabs(double{value} - r.exact) <= bound);
          }
        }
      }
    }
  }
}

TEST_CASE("every instruction set gives the scalar bits of a matmul") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (PackedCodes type : kCodesByColumn) {
      for (const SamplePlan& plan : step_plans()) {
        for (int rows : {1, 15, 16, 17, 33, 64, 77, 120}) {
          for (int tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17}) {
            const SampleKind kind =
                (rows + tokens) % 2 == 0 ? SampleKind::kPlain : SampleKind::kNasty;
            const Problem problem = random_problem(static_cast<uint64_t>(rows * 100 + tokens), type,
                                                   rows, plan, tokens, kind);
            REQUIRE(first_difference(run_whole(*table, problem),
                                     run_whole(scalar_kernels(), problem)) == -1);
          }
        }
      }
    }
  }
}

TEST_CASE("infinities and NaNs pass through every instruction set's matmul alike") {
  for (const KernelTable* table : available_kernels()) {
    for (PackedCodes type : kCodesByColumn) {
      Problem problem = random_problem(3, type, 33, plan_of({{20, 12}}), 5, SampleKind::kPlain);
      problem.input[3] = INFINITY;
      problem.input[problem.input_stride() + 1] = -INFINITY;
      problem.input[2 * problem.input_stride() + 9] = NAN;
      CHECK(first_difference(run_whole(*table, problem), run_whole(scalar_kernels(), problem)) ==
            -1);
    }
  }
}

TEST_CASE("the bits of a matmul do not depend on how tiles and tokens are divided into calls") {
  const SamplePlan plan = plan_of({{50, 30, 20}, {33}});
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (PackedCodes type : kCodesByColumn) {
      const Problem problem = random_problem(5, type, 16 * 9 + 3, plan, 17, SampleKind::kNasty);
      const int tiles = problem.matrix.tiles();
      const std::vector<float> whole = run_whole(*table, problem);
      for (int tiles_at_once : {1, 2, 3, 4, 7}) {
        for (int tokens_at_once : {1, 2, 5, 8, 16}) {
          std::vector<float> output = problem.empty_output();
          for (int tile = 0; tile < tiles; tile += tiles_at_once) {
            for (int token = 0; token < problem.tokens; token += tokens_at_once) {
              run(*table, problem, tile, std::min(tile + tiles_at_once, tiles), token,
                  std::min(token + tokens_at_once, problem.tokens), output);
            }
          }
          REQUIRE(first_difference(output, whole) == -1);
        }
      }
    }
  }
}

TEST_CASE("a matmul of no tiles or no tokens writes nothing") {
  for (const KernelTable* table : available_kernels()) {
    const Problem problem =
        random_problem(5, PackedCodes::kF32, 40, plan_of({{8}}), 2, SampleKind::kPlain);
    std::vector<float> output = problem.empty_output();
    run(*table, problem, 1, 1, 0, 2, output);
    run(*table, problem, 0, 3, 1, 1, output);
    CHECK(first_difference(output, problem.empty_output()) == -1);
  }
}

// Some columns of a problem as a separate matrix and input.
struct ColumnsOf {
  ColumnsOf(const Problem& whole, const std::vector<int>& columns) : count(columns.size()) {
    const size_t block = column_bytes(whole.matrix.type);
    const auto all = static_cast<size_t>(whole.matrix.columns);
    for (size_t tile = 0; tile < static_cast<size_t>(whole.matrix.tiles()); ++tile) {
      for (int column : columns) {
        const auto from =
            whole.matrix.packed.begin() +
            static_cast<std::ptrdiff_t>((tile * all + static_cast<size_t>(column)) * block);
        packed.insert(packed.end(), from, from + static_cast<std::ptrdiff_t>(block));
      }
    }
    for (size_t token = 0; token < static_cast<size_t>(whole.tokens); ++token) {
      for (int column : columns) {
        input.push_back(whole.input[token * whole.input_stride() + static_cast<size_t>(column)]);
      }
    }
  }

  size_t count;
  std::vector<std::byte> packed;
  std::vector<float> input;
};

TEST_CASE("the runs of several matrices are added leaf by leaf, in the order of the matrices") {
  // Leaves of 5, 4, 3 and 6 columns; the first matrix has the first ones of each leaf, and so on.
  const SamplePlan plan = plan_of({{5, 4, 3}, {6}});
  const std::vector<std::vector<int>> columns_of_part = {{2, 1, 0, 3}, {1, 1, 1, 1}, {2, 2, 2, 2}};
  std::vector<std::vector<int>> columns(3);
  std::vector<std::vector<LeafStep>> steps(3, plan.steps);
  int column = 0;
  for (size_t leaf = 0; leaf < 4; ++leaf) {
    for (size_t part = 0; part < 3; ++part) {
      steps[part][leaf].columns = columns_of_part[part][leaf];
      for (int i = 0; i < columns_of_part[part][leaf]; ++i) columns[part].push_back(column++);
    }
  }
  REQUIRE(column == plan.columns);
  for (const KernelTable* table : available_kernels()) {
    for (PackedCodes type : {PackedCodes::kF32, PackedCodes::kF16, PackedCodes::kBF16}) {
      for (int tokens : {1, 3}) {
        const Problem problem = random_problem(77, type, 70, plan, tokens, SampleKind::kPlain);
        const ColumnsOf first(problem, columns[0]), second(problem, columns[1]),
            third(problem, columns[2]);
        std::vector<PackedMatrix> matrices;
        std::vector<MatmulPart> parts;
        matrices.reserve(3);
        for (const ColumnsOf* of : {&first, &second, &third}) {
          matrices.push_back(view_by_column(type, of->packed.data(), problem.matrix.rows,
                                            static_cast<int>(of->count), steps[parts.size()]));
          parts.push_back({&matrices.back(), of->input.data(), of->count * sizeof(float)});
        }
        std::vector<float> output = problem.empty_output();
        table->matmul({.parts = parts.data(),
                       .part_count = 3,
                       .tile_begin = 0,
                       .tile_end = problem.matrix.tiles(),
                       .tokens = tokens,
                       .output = output.data(),
                       .token_stride = problem.token_stride(),
                       .subtree_stride = problem.subtree_stride()});
        std::vector<float> expected = problem.empty_output();
        for (int token = 0; token < tokens; ++token) {
          for (int row = 0; row < problem.matrix.rows; ++row) {
            size_t at =
                static_cast<size_t>(token) * problem.token_stride() + static_cast<size_t>(row);
            for (const float value : defined(problem, columns_of_part, token, row)) {
              expected[at] = value;
              at += problem.subtree_stride();
            }
          }
        }
        CHECK(first_difference(output, expected) == -1);
      }
    }
  }
}

}  // namespace lockstep

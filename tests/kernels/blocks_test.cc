// Quantised matrices: the scalar kernels against double precision, and every instruction set
// against the scalar ones.
#include <doctest/doctest.h>

#include "kernels/answers/sample_quantised.h"
#include "kernels/definition.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

// One product of a quantised matrix.
struct Product {
  QuantisedMatrix matrix;
  int tokens;
  int subtrees;
  std::vector<float> input;

  Product(uint64_t seed, QuantisedFormat format, int rows, const SamplePlan& plan, int token_count)
      : Product(SampleRandom(seed), format, rows, plan, token_count) {}

  size_t token_stride() const { return static_cast<size_t>(matrix.rows()) + 3; }
  size_t subtree_stride() const { return token_stride() * static_cast<size_t>(tokens) + 1; }
  std::vector<float> empty_output() const {
    return std::vector<float>(static_cast<size_t>(subtrees) * subtree_stride(), kUntouched);
  }

 private:
  Product(SampleRandom random, QuantisedFormat format, int rows, const SamplePlan& plan,
          int token_count)
      : matrix(random, format, rows, plan.steps),
        tokens(token_count),
        subtrees(plan.subtrees),
        input(random.units(static_cast<size_t>(plan.columns) * static_cast<size_t>(token_count))) {}
};

void run(const KernelTable& table, const Product& product, const PreparedInput& input,
         int tile_begin, int tile_end, int token_begin, int token_end, std::vector<float>& output) {
  const PackedMatrix view = product.matrix.view();
  const MatmulPart part = {&view, input.token(token_begin), input.stride};
  table.matmul({.parts = &part,
                .part_count = 1,
                .tile_begin = tile_begin,
                .tile_end = tile_end,
                .tokens = token_end - token_begin,
                .output = output.data() + static_cast<size_t>(token_begin) * product.token_stride(),
                .token_stride = product.token_stride(),
                .subtree_stride = product.subtree_stride()});
}

int tiles_of(const Product& product) {
  return (product.matrix.rows() + kLanes - 1) / kLanes;
}

std::vector<float> run_whole(const KernelTable& table, const Product& product) {
  const PreparedInput input = prepare_input(table, product.matrix, product.input, product.tokens);
  std::vector<float> output = product.empty_output();
  run(table, product, input, 0, tiles_of(product), 0, product.tokens, output);
  return output;
}

// The matrix's input: a code's value where the input is quantised, or the value itself.
std::vector<double> inputs_of(const Product& product, int token) {
  const PreparedInput prepared =
      prepare_input(scalar_kernels(), product.matrix, product.input, product.tokens);
  std::vector<double> values;
  const std::vector<BlockColumns>& blocks = product.matrix.blocks();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const size_t at = static_cast<size_t>(token) * blocks.size() + i;
    for (int column = 0; column < blocks[i].count; ++column) {
      values.push_back(prepared.integers.empty()
                           ? double{prepared.floats[at].values[column]}
                           : double{prepared.integers[at].scale} *
                                 double{prepared.integers[at].codes[column] * 1.0});
    }
  }
  return values;
}

void check_against_doubles(const Product& product) {
  const std::vector<float> output = run_whole(scalar_kernels(), product);
  for (int token = 0; token < product.tokens; ++token) {
    const std::vector<double> input = inputs_of(product, token);
    for (int row = 0; row < product.matrix.rows(); ++row) {
      double exact = 0, magnitude = 0;
      int column = 0;
      size_t at = static_cast<size_t>(token) * product.token_stride() + static_cast<size_t>(row);
      for (const LeafStep& step : product.matrix.steps()) {
        for (const int end = column + step.columns; column < end; ++column) {
          const QuantisedWeight& weight = product.matrix.at(row, column);
          const double x = input[static_cast<size_t>(column)];
          exact += weight.value() * x;
          magnitude += weight.magnitude() * std::fabs(x);
        }
        if (step.ends_subtree == 0) continue;
        // At most three roundings of a half's term, 33 of a float dot product, two for each half
        // in the chain and one for each leaf of the tree; an underflow costs 2^-149 at most, times
        // 256 in FP8.
        const double roundings = 40 + 5 * static_cast<double>(product.matrix.blocks().size());
        const double bound = magnitude * roundings * 0x1p-24 + roundings * 0x1p-130;
        REQUIRE(std::fabs(double{output[at]} - exact) <= bound);
        at += product.subtree_stride();
        exact = magnitude = 0;
      }
    }
  }
}

std::vector<SamplePlan> block_plans() {
  return {plan_of({{1}}), plan_of({{32, 64, 7}, {100}}), plan_of({{200}}),
          plan_of({std::vector<int>(64, 33)})};
}

}  // namespace

TEST_CASE("scalar products of quantised matrices are within the error bound of their sums") {
  for (const QuantisedFormat& format : kQuantisedFormats) {
    CAPTURE(static_cast<int>(format.codes));
    CAPTURE(static_cast<int>(format.scales));
    CAPTURE(format.has_integer_input);
    for (const SamplePlan& plan : block_plans()) {
      check_against_doubles(Product(11, format, 21, plan, 2));
    }
  }
}

TEST_CASE("scalar products of quantised matrices are what the definition says") {
  for (const QuantisedFormat& format : kQuantisedFormats) {
    CAPTURE(static_cast<int>(format.codes));
    CAPTURE(static_cast<int>(format.scales));
    CAPTURE(format.has_integer_input);
    for (const SamplePlan& plan : block_plans()) {
      Product product(13, format, 21, plan, 2);
      product.input[0] = 0x1p-101f;  // a block of one column that counts as zero
      std::vector<float> expected = product.empty_output();
      for (int token = 0; token < product.tokens; ++token) {
        const float* x = product.input.data() + static_cast<size_t>(token * plan.columns);
        for (int row = 0; row < product.matrix.rows(); ++row) {
          size_t at =
              static_cast<size_t>(token) * product.token_stride() + static_cast<size_t>(row);
          for (const float value : definition::multiply(product.matrix, row, x)) {
            expected[at] = value;
            at += product.subtree_stride();
          }
        }
      }
      REQUIRE(first_difference(run_whole(scalar_kernels(), product), expected) == -1);
    }
  }
}

TEST_CASE("every instruction set gives the scalar bits of a product of a quantised matrix") {
  for (const QuantisedFormat& format : kQuantisedFormats) {
    CAPTURE(static_cast<int>(format.codes));
    CAPTURE(static_cast<int>(format.scales));
    CAPTURE(format.has_integer_input);
    for (const SamplePlan& plan : block_plans()) {
      for (int tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9}) {
        const int rows = 16 * (tokens % 5) + 7;
        const Product product(static_cast<uint64_t>(tokens), format, rows, plan, tokens);
        const std::vector<float> expected = run_whole(scalar_kernels(), product);
        for (const KernelTable* table : available_kernels().subspan(1)) {
          CAPTURE(std::string(table->name));
          CAPTURE(tokens);
          REQUIRE(first_difference(run_whole(*table, product), expected) == -1);
        }
      }
    }
  }
}

TEST_CASE("the bits of a quantised product do not depend on how tiles and tokens are divided") {
  for (const QuantisedFormat& format : kQuantisedFormats) {
    CAPTURE(static_cast<int>(format.codes));
    CAPTURE(static_cast<int>(format.scales));
    const Product product(5, format, 16 * 6 + 3, plan_of({{50, 30, 20}, {33}}), 11);
    for (const KernelTable* table : available_kernels()) {
      CAPTURE(std::string(table->name));
      const std::vector<float> whole = run_whole(*table, product);
      const PreparedInput input =
          prepare_input(*table, product.matrix, product.input, product.tokens);
      for (int tiles_at_once : {1, 3, 7}) {
        for (int tokens_at_once : {1, 4, 9}) {
          std::vector<float> output = product.empty_output();
          for (int tile = 0; tile < tiles_of(product); tile += tiles_at_once) {
            for (int token = 0; token < product.tokens; token += tokens_at_once) {
              run(*table, product, input, tile, std::min(tile + tiles_at_once, tiles_of(product)),
                  token, std::min(token + tokens_at_once, product.tokens), output);
            }
          }
          REQUIRE(first_difference(output, whole) == -1);
        }
      }
    }
  }
}

TEST_CASE("parts of any formats add up in one chain, alike on every instruction set") {
  // Each leaf is one chain over the parts, so each part after the first must change the output by
  // about its own product.
  constexpr int kRows = 40;
  const SamplePlan plan = plan_of({{40, 70}, {33}});
  for (int tokens : {1, 3, 8}) {
    std::vector<Product> products;
    for (size_t i = 0; i < std::size(kQuantisedFormats); i += 6) {
      products.emplace_back(i, kQuantisedFormats[i], kRows, plan, tokens);
    }
    SampleRandom random(9);
    const MatrixByColumn plain =
        random_matrix(random, PackedCodes::kBF16, kRows, plan.columns, SampleKind::kPlain);
    const std::vector<float> input =
        random.units(static_cast<size_t>(plan.columns) * static_cast<size_t>(tokens));
    std::vector<float> expected;
    for (const KernelTable* table : available_kernels()) {
      std::vector<PackedMatrix> views;
      std::vector<PreparedInput> inputs;
      std::vector<MatmulPart> parts;
      for (const Product& product : products) {
        views.push_back(product.matrix.view());
        inputs.push_back(prepare_input(*table, product.matrix, product.input, tokens));
      }
      views.push_back(plain.view(plan.steps));
      for (size_t i = 0; i < products.size(); ++i) {
        parts.push_back({&views[i], inputs[i].token(0), inputs[i].stride});
      }
      parts.push_back(
          {&views.back(), input.data(), static_cast<size_t>(plan.columns) * sizeof(float)});
      const size_t subtree_stride = size_t{kRows} * static_cast<size_t>(tokens);
      std::vector<float> output(2 * subtree_stride);
      const auto run_parts = [&](const MatmulPart* first, size_t count) {
        table->matmul({first, static_cast<int32_t>(count), 0, 3, tokens, output.data(), kRows,
                       subtree_stride});
        return output;
      };
      std::vector<double> sum(output.size());
      double largest = 0;
      for (const MatmulPart& part : parts) {
        run_parts(&part, 1);
        for (size_t i = 0; i < sum.size(); ++i) {
          sum[i] += double{output[i]};
          largest = std::max(largest, std::fabs(double{output[i]}));
        }
      }
      run_parts(parts.data(), parts.size());
      for (size_t i = 0; i < sum.size(); ++i) {
        REQUIRE(std::fabs(double{output[i]} - sum[i]) <= largest * 1e-4);
      }
      if (expected.empty()) expected = output;
      CHECK(first_difference(output, expected) == -1);
    }
  }
}

TEST_CASE("embed reads rows of a quantised matrix, each weight rounded once") {
  for (const QuantisedFormat& format : kQuantisedFormats) {
    CAPTURE(static_cast<int>(format.codes));
    CAPTURE(static_cast<int>(format.scales));
    const Product product(21, format, 50, plan_of({{50, 30, 20}, {33}}), 1);
    const QuantisedMatrix& matrix = product.matrix;
    const PackedMatrix view = matrix.view();
    const std::vector<int32_t> rows = {49, -1, 0, 17};
    const size_t columns = static_cast<size_t>(matrix.columns());
    std::vector<float> expected(rows.size() * columns, kUntouched);
    for (size_t token = 0; token < rows.size(); ++token) {
      for (int column = 0; rows[token] >= 0 && column < matrix.columns(); ++column) {
        // factor * E4M3 is rounded before it is multiplied by the code.
        QuantisedWeight weight = matrix.at(rows[token], column);
        weight.scale = double{static_cast<float>(weight.scale)};
        expected[token * columns + static_cast<size_t>(column)] =
            static_cast<float>(weight.value());
      }
    }
    for (const KernelTable* table : available_kernels()) {
      std::vector<float> output(expected.size(), kUntouched);
      table->embed({&view, matrix.blocks().data(), rows.data(), 0, 4, output.data(), columns});
      for (size_t i = 0; i < output.size(); ++i) REQUIRE(output[i] == expected[i]);
    }
  }
}

}  // namespace lockstep

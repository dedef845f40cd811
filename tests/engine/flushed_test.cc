// No subnormal number matters: the golden cases have the same bits on threads that flush subnormal
// operands and results to zero, as GPUs may (docs/internals/arithmetic.md).
#include <doctest/doctest.h>

#include <thread>

#include "engine/variant.h"
#include "support/flushing.h"
#include "support/golden.h"
#include "support/rank_threads.h"

using namespace lockstep;

namespace {

// A subnormal product and a subnormal operand in a thread of its own.
std::pair<float, float> products_in_thread() {
  volatile float small = 0x1p-100f, subnormal = 0x1p-130f;
  std::pair<float, float> products;
  std::thread([&] { products = {small * 0x1p-40f, subnormal * 0x1p100f}; }).join();
  return products;
}

}  // namespace

TEST_CASE("a thread that is started while flushing flushes too") {
  CHECK(products_in_thread() == std::pair(0x1p-140f, 0x1p-30f));
  {
    const Flushing flushing;
    CHECK(products_in_thread() == std::pair(0.0f, 0.0f));
  }
  CHECK(products_in_thread() == std::pair(0x1p-140f, 0x1p-30f));
}

TEST_CASE("golden cases have the same bits where subnormal numbers are flushed") {
  const std::vector<Variant> variants = {
      {"scalar", {.isa = "scalar"}},
      {"the best instruction set, 2 threads", {.threads = 2}},
      {"2 ranks", {.shares = {2, 1}}},
  };
  for (const std::string& name : all_golden_cases()) {
    CAPTURE(name);
    const std::string folder = golden_folder(name);
    const GenerateRequest request = {
        .prompt = read_golden(folder).prompt, .max_tokens = 8, .prompt_logits = true};
    for (const bool exact : {true, false}) {
      const Answer reference = run_ranks(folder, {.exact = exact}, {request}).answers[0];
      for (Variant variant : variants) {
        variant.setup.exact = exact;
        const Flushing flushing;
        const Outcome outcome = run_ranks(folder, variant.setup, {request});
        CHECK_MESSAGE(same_bits(outcome.answers[0], reference), variant.name);
      }
    }
  }
}

// Every instruction set gives the fixed answers (kernels/answers/fixed_answers.h).
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "kernels/answers/fixed_answers.h"
#include "kernels/isa.h"

namespace lockstep {
namespace {

// Printed so that a new kernel's author sees where to look.
void check(const FixedAnswer& answer) {
  if (!answer.is_right()) {
    std::printf("%s: 0x%016llx\n", answer.kernel, static_cast<unsigned long long>(answer.found));
  }
  CHECK(answer.is_right());
}

}  // namespace

TEST_CASE("every instruction set gives the one answer") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    const auto answers = fixed_answers(*table);
    CHECK(answers.size() == 20);
    for (const FixedAnswer& answer : answers) check(answer);
  }
}

TEST_CASE("the elementary functions give the one answer") {
  check(fixed_math_answer());
}

TEST_CASE("a kernel that rounds differently has another answer") {
  KernelTable wrong = *available_kernels().front();
  wrong.add = [](const float* x, float* sum, size_t count) {
    for (size_t i = 0; i < count; ++i) sum[i] += x[i] * (1.0f + 0x1p-23f);
  };
  std::string names;
  for (const FixedAnswer& answer : fixed_answers(wrong))
    names += answer.is_right() ? "" : answer.kernel;
  CHECK(names == "layers");  // the only one that uses it
}

}  // namespace lockstep

#include "weights/quantised/quantisation_report.h"

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("parts of one tensor add up, and the worst tensor comes first") {
  QuantisationReport first, second;
  first.add({"down", 4, 10, {1, 100, 0.5f}});
  first.add({"up", 4, 10, {4, 100, 0.25f}});
  first.add({"down", 4, 30, {15, 300, 0.75f}});
  second.add({"up", 4, 10, {4, 100, 2}});
  first.add(second);
  first.add(QuantisationReport());
  const std::vector<TensorError> tensors = first.worst_first();
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "down");
  CHECK(tensors[0].weights == 40);
  CHECK(tensors[0].error.largest == 0.75f);
  CHECK(tensors[0].error.relative_rms() == doctest::Approx(0.2));
  CHECK(tensors[1].weights == 20);
  CHECK(tensors[1].error.largest == 2);
  CHECK(first.total().squared_error == 24);
  CHECK(first.total().relative_rms() == doctest::Approx(0.2));
  CHECK(QuantisationReport().empty());
}

#include "cli/bench/shape_bench.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

constexpr WholeModel kWhole = {.layers = 61.5, .layer_bytes = 10, .shared_bytes = 20};

TEST_CASE("two measurements separate the time of a layer from the rest") {
  // 3 s for the rest and 2 s for each layer.
  const LayerTimes times{.layers = 4, .seconds = 11, .fewer_layers = 1, .fewer_seconds = 5};
  CHECK(extrapolated_seconds(times, kWhole) == doctest::Approx(3 + 2 * 61.5));
}

TEST_CASE("the time of one layer is divided by the bytes that a token reads") {
  // A third of the 30 bytes are the layer's.
  const LayerTimes times{.layers = 1, .seconds = 9};
  CHECK(extrapolated_seconds(times, kWhole) == doctest::Approx(6 + 3 * 61.5));
}

TEST_CASE("measurements that contradict each other are divided by bytes too") {
  const LayerTimes faster{.layers = 2, .seconds = 8, .fewer_layers = 1, .fewer_seconds = 9};
  CHECK(extrapolated_seconds(faster, kWhole) == doctest::Approx(4 + 2 * 61.5));
  // Layers alone cannot take longer than layers and the rest together.
  const LayerTimes steep{.layers = 2, .seconds = 8, .fewer_layers = 1, .fewer_seconds = 1};
  CHECK(extrapolated_seconds(steep, kWhole) == doctest::Approx(4 + 2 * 61.5));
}

TEST_CASE("a full measurement is not changed") {
  const LayerTimes times{.layers = 4, .seconds = 11, .fewer_layers = 1, .fewer_seconds = 5};
  const WholeModel same{.layers = 4, .layer_bytes = 10, .shared_bytes = 20};
  CHECK(extrapolated_seconds(times, same) == doctest::Approx(11));
}

TEST_CASE("bits and formats that do not exist are refused before anything is measured") {
  const auto odd = bench_shape({.shape = "qwen3-0.6b", .bits = 7, .format = {}}, {});
  REQUIRE_FALSE(odd.ok());
  CHECK(odd.error().message.find("--bits 7") != std::string::npos);
  const auto both = bench_shape({.shape = "qwen3-0.6b", .bits = 4, .format = "q4_0"}, {});
  REQUIRE_FALSE(both.ok());
  const auto unknown = bench_shape({.shape = "qwen3-0.6b", .format = "q9_z"}, {});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message.find("q9_z") != std::string::npos);
  const auto layers = bench_shape({.shape = "qwen3-0.6b", .format = {}, .layers = 99}, {});
  REQUIRE_FALSE(layers.ok());
  CHECK(layers.error().message.find("99 layers") != std::string::npos);
}

TEST_CASE("a model that the memory cannot hold is refused in one sentence") {
  const auto large = bench_shape({.shape = "kimi-k2", .bits = 16, .format = {}}, {});
  REQUIRE_FALSE(large.ok());
  CHECK(large.error().code == ErrorCode::kExhausted);
  CHECK(large.error().message.find("--layers") != std::string::npos);
}

}  // namespace
}  // namespace lockstep

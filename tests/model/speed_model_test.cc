#include "model/load/speed_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "json/json.h"
#include "model/load/shape_model.h"
#include "model/shapes/known_shapes.h"

using namespace lockstep;

namespace {

constexpr TokenCosts kCosts{
    .cut_bytes = 2e9, .whole_bytes = 1e7, .kernels = 480, .layers = 28, .hidden = 1024};
constexpr MachineSpeed kMachine{.read_bytes_per_us = 20e3, .kernel_us = 0.5};

Json published() {
  std::ifstream file(std::string(LOCKSTEP_SOURCE_DIR) +
                     "/tests/data/cluster/mac_studio_m3_ultra.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  auto json = parse_json(text);
  REQUIRE(json.ok());
  return std::move(json).value();
}

// Bytes per weight of the experts and of all others.
struct WeightBytes {
  double experts;
  double rest;
};

WeightBytes weight_bytes(const Json& bits) {
  if (!bits.is_object()) return {bits.to_number<double>() / 8, bits.to_number<double>() / 8};
  return {bits.at("experts").to_number<double>() / 8, bits.at("rest").to_number<double>() / 8};
}

// As the measured software cuts a model: the LM head, the router and the projections to the latents
// stay whole.
TokenCosts costs_of_measured(const std::string& shape, WeightBytes bytes) {
  const ModelConfig config = read_shape_config(shape).value();
  const ModelSummary summary = summarise(config, nullptr).value();
  TokenCosts costs = token_costs(config, summary);
  for (const ClassSummary& part : summary.classes) {
    const bool is_whole = part.weight_class == WeightClass::kHead ||
                          part.weight_class == WeightClass::kRouter ||
                          part.weight_class == WeightClass::kNorms;
    const bool is_expert = part.weight_class == WeightClass::kExperts;
    const auto parameters = static_cast<double>(part.count.token_parameters);
    (is_whole ? costs.whole_bytes : costs.cut_bytes) +=
        parameters * (is_expert ? bytes.experts : bytes.rest);
  }
  if (config.latent.rows() > 0) {
    const LatentConfig& latent = config.latent;
    const double moved = static_cast<double>(latent.query_rank + latent.kv_rank + latent.rope) *
                         config.hidden * config.layers * bytes.rest;
    costs.cut_bytes -= moved;
    costs.whole_bytes += moved;
  }
  return costs;
}

}  // namespace

TEST_CASE("the model predicts the published speeds of clusters of Macs") {
  const Json data = published();
  const double bandwidth = data.at("node").at("memory_bandwidth_gb_s").to_number<double>() * 1e3;
  const MachineSpeed machine{.read_bytes_per_us = 0.843 * bandwidth, .kernel_us = 5.7};
  const LinkSpeed link{.exchange_us = 40};
  double squares = 0;
  int count = 0;
  for (const Json& point : data.at("measured").as_array()) {
    const std::string shape(point.at("model").as_string());
    CAPTURE(shape);
    const TokenCosts costs = costs_of_measured(shape, weight_bytes(point.at("bits_per_weight")));
    const int nodes = point.at("nodes").to_number<int>();
    const double predicted = 1e6 / token_us(costs, machine, link, {.ranks = nodes});
    const double error = predicted / point.at("tokens_per_s").to_number<double>() - 1;
    CAPTURE(nodes);
    CHECK(std::abs(error) < 0.12);
    squares += error * error;
    ++count;
  }
  CHECK(count == 19);
  const double rms = std::sqrt(squares / count);
  CAPTURE(rms);
  CHECK(rms < 0.06);
}

TEST_CASE("messages of a token") {
  CHECK(message_count(kCosts, {.ranks = 1}) == 0);
  CHECK(message_count(kCosts, {.ranks = 2}) == 2 * 28 + 3);
  CHECK(message_count(kCosts, {.ranks = 2, .stages = 2}) == 2);
  CHECK(message_count(kCosts, {.ranks = 4, .stages = 2}) == 2 * 28 + 3 + 2);
}

TEST_CASE("latency is paid once per message, and stages do not divide a token's work") {
  const LinkSpeed fast{.exchange_us = 1}, slow{.exchange_us = 1, .delay_us = 300};
  const double alone = token_us(kCosts, kMachine, fast, {});
  CHECK(alone == doctest::Approx(2.01e9 / 20e3 + 240));
  const Parallel tensor{.ranks = 2}, pipeline{.ranks = 2, .stages = 2};
  CHECK(token_us(kCosts, kMachine, fast, tensor) ==
        doctest::Approx(1.01e9 / 20e3 + 240 + 59 * 1.0));
  CHECK(token_us(kCosts, kMachine, slow, tensor) - token_us(kCosts, kMachine, fast, tensor) ==
        doctest::Approx(59 * 300.0));
  CHECK(token_us(kCosts, kMachine, slow, pipeline) == doctest::Approx(alone + 2 * 301));
  const LinkSpeed narrow{.exchange_us = 1, .bytes_per_us = 4096};
  CHECK(token_us(kCosts, kMachine, narrow, tensor) - token_us(kCosts, kMachine, fast, tensor) ==
        doctest::Approx(59.0));
}

TEST_CASE("a machine's speed follows from the time of its own token") {
  const double measured = token_us(kCosts, kMachine, {}, {});
  const MachineSpeed found = machine_speed(kCosts, measured, kMachine.kernel_us);
  CHECK(found.read_bytes_per_us == doctest::Approx(kMachine.read_bytes_per_us));
  // Kernels cannot take more than half of it, whatever their given time.
  CHECK(machine_speed(kCosts, 1000, 100).read_bytes_per_us == doctest::Approx(2.01e9 / 500));
}

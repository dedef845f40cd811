#include "planner/check.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "support/golden.h"

using namespace lockstep;

namespace {

Json published_json() {
  return json_of_file(LOCKSTEP_SOURCE_DIR "/tests/data/cluster/mac_studio_m3_ultra.json");
}

PublishedData data_of(const Json& json) {
  auto data = parse_published(dump_json(json));
  REQUIRE_MESSAGE(data.ok(), data.error().message);
  return std::move(data.value());
}

std::string error_of_published(const Json& json) {
  const auto data = parse_published(dump_json(json));
  REQUIRE(!data.ok());
  return data.error().message;
}

// Points without noise, computed from these constants.
Json exact_points(const PublishedConstants& constants) {
  Json json = published_json();
  const CheckResult result = check_published(data_of(json), constants);
  for (size_t i = 0; i < result.points.size(); ++i) {
    json.at("measured").at(i).as_object()["tokens_per_s"] = result.points[i].predicted_tok_s;
  }
  return json;
}

}  // namespace

TEST_CASE("the shipped constants give the published speeds of clusters of Macs") {
  const Json json = published_json();
  const CheckResult result = check_published(data_of(json), m3_ultra_constants());
  REQUIRE(result.points.size() == 19);
  CHECK(result.rms < 0.06);
  CHECK(result.worst < 0.12);
  for (size_t i = 0; i < result.points.size(); ++i) {
    const Json& measured = json.at("measured").at(i);
    CHECK(result.points[i].point.measured_tok_s == measured.at("tokens_per_s").to_number<double>());
    CHECK(result.points[i].point.model == std::string(measured.at("model").as_string()));
  }
}

TEST_CASE("a published point computed by hand") {
  // 70.55 billion parameters at 2 bytes: the 2.10 GB of the LM head stay whole, 136.9 GB are cut in
  // 4.
  const CheckResult result = check_published(data_of(published_json()), m3_ultra_constants());
  const CheckedPoint& llama = result.points[2];
  REQUIRE(llama.point.nodes == 4);
  const double rate = 819e3 * 0.843;
  const double by_hand = (136.9e9 / 4 + 2.10e9) / rate + 80 * 17 * 5.74 + 2 * 80 * 40.1;
  CHECK(llama.predicted_tok_s == doctest::Approx(1e6 / by_hand).epsilon(0.002));
  const double own = (136.9e9 + 2.10e9) / 4 / rate + 80 * 17 * 5.74 + 2 * 80 * 40.1;
  CHECK(llama.own_cut_tok_s == doctest::Approx(1e6 / own).epsilon(0.002));
  CHECK(llama.own_tok_s > llama.own_cut_tok_s);
}

TEST_CASE("lockstep's cut is never slower, and on one machine it changes nothing") {
  for (const CheckedPoint& checked :
       check_published(data_of(published_json()), m3_ultra_constants()).points) {
    CAPTURE(checked.point.model);
    if (checked.point.nodes == 1) {
      CHECK(checked.own_cut_tok_s == doctest::Approx(checked.predicted_tok_s));
    } else {
      CHECK(checked.own_cut_tok_s > checked.predicted_tok_s);
    }
  }
}

TEST_CASE("bandwidth, shapes and speeds are taken from the file") {
  const CheckResult before = check_published(data_of(published_json()), m3_ultra_constants());
  Json faster = published_json();
  faster.at("node").as_object()["memory_bandwidth_gb_s"] = 1638;
  const CheckResult doubled = check_published(data_of(faster), m3_ultra_constants());
  CHECK(doubled.points[0].predicted_tok_s > 1.8 * before.points[0].predicted_tok_s);
  Json deeper = published_json();
  deeper.at("models").at("llama-3.3-70b").as_object()["layers"] = 160;
  const CheckResult deep = check_published(data_of(deeper), m3_ultra_constants());
  CHECK(deep.points[0].predicted_tok_s < 0.52 * before.points[0].predicted_tok_s);
  CHECK(deep.points[3].predicted_tok_s == before.points[3].predicted_tok_s);
  Json measured = published_json();
  measured.at("measured").at(0).as_object()["tokens_per_s"] = 10;
  const CheckResult other = check_published(data_of(measured), m3_ultra_constants());
  CHECK(other.worst == doctest::Approx(std::abs(before.points[0].predicted_tok_s / 10 - 1)));
}

TEST_CASE("a fit finds the constants that made the points") {
  const PublishedConstants made{.efficiency = 0.7, .kernel_us = 2.5, .exchange_us = 90};
  const auto fitted = fit_published(data_of(exact_points(made)), m3_ultra_constants());
  REQUIRE_MESSAGE(fitted.ok(), fitted.error().message);
  CHECK(fitted.value().efficiency == doctest::Approx(made.efficiency).epsilon(1e-6));
  CHECK(fitted.value().kernel_us == doctest::Approx(made.kernel_us).epsilon(1e-6));
  CHECK(fitted.value().exchange_us == doctest::Approx(made.exchange_us).epsilon(1e-6));
}

TEST_CASE("the shipped constants are the fit to the shipped file") {
  const PublishedConstants shipped = m3_ultra_constants();
  const PublishedData data = data_of(published_json());
  const PublishedConstants elsewhere{.efficiency = 0.5, .kernel_us = 1, .exchange_us = 200};
  const auto fitted = fit_published(data, elsewhere);
  REQUIRE_MESSAGE(fitted.ok(), fitted.error().message);
  CHECK(fitted.value().efficiency == doctest::Approx(shipped.efficiency).epsilon(0.01));
  CHECK(fitted.value().kernel_us == doctest::Approx(shipped.kernel_us).epsilon(0.02));
  CHECK(fitted.value().exchange_us == doctest::Approx(shipped.exchange_us).epsilon(0.02));
  CHECK(check_published(data, fitted.value()).rms <= check_published(data, shipped).rms + 1e-4);
}

TEST_CASE("points of a single machine say nothing about exchanges, and a fit reports that") {
  Json json = published_json();
  JsonArray alone;
  for (const Json& point : json.at("measured").as_array()) {
    if (point.at("nodes").to_number<int>() == 1) alone.push_back(point);
  }
  json.as_object()["measured"] = alone;
  const auto fitted = fit_published(data_of(json), m3_ultra_constants());
  REQUIRE(!fitted.ok());
  CHECK(fitted.error().message.find("several models") != std::string::npos);
}

TEST_CASE("an invalid file is refused with the key") {
  Json json = published_json();
  json.at("measured").at(3).as_object()["nodes"] = 0;
  CHECK(error_of_published(json) == "\"nodes\" of point 4 must be a positive number");
  json = published_json();
  json.at("measured").at(0).as_object()["model"] = "gpt-9";
  CHECK(error_of_published(json) == "\"models\" of the published speeds needs \"gpt-9\"");
  json = published_json();
  json.at("models").at("deepseek-v3.1").at("mla").as_object().erase("kv_lora");
  CHECK(error_of_published(json) == "deepseek-v3.1 of the published speeds needs \"kv_lora\"");
  json = published_json();
  json.as_object().erase("node");
  CHECK(error_of_published(json) == "the file of the published speeds needs \"node\"");
  json = published_json();
  json.at("models").at("llama-3.3-70b").as_object()["kv_heads"] = 7;
  CHECK(error_of_published(json).find("the shape of llama-3.3-70b is not a valid model") == 0);
}

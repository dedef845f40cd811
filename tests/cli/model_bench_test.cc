#include "cli/bench/model_bench.h"

#include <doctest/doctest.h>

namespace lockstep {
namespace {

JsonObject json_of(const ModelTimes& times) {
  ModelBenchFlags flags;
  flags.prompt_tokens = 100;
  return bench_json(flags, GroupSupervisorOptions{}, {.name = "m", .times = times});
}

TEST_CASE("energy per token is shown where the machine measures it") {
  const JsonObject json = json_of({.prompt_s = 2, .token_s = 0.1, .prompt_j = 50, .token_j = 4.5});
  CHECK(json.at("prefill_j_per_token").to_number<double>() == 0.5);
  CHECK(json.at("decode_j_per_token").to_number<double>() == 4.5);
  CHECK(json.at("prefill_tok_s").to_number<double>() == 50);
}

TEST_CASE("without a meter no energy is shown") {
  const JsonObject json = json_of({.prompt_s = 2, .token_s = 0.1});
  CHECK_FALSE(json.contains("prefill_j_per_token"));
  CHECK_FALSE(json.contains("decode_j_per_token"));
}

}  // namespace
}  // namespace lockstep

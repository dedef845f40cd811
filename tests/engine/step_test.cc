#include "engine/step.h"

#include <doctest/doctest.h>

#include <random>

using namespace lockstep;

namespace {

constexpr BatchLimits kLimits{
    .tokens_max = 8, .page_list_entries_max = 4, .pages = 4, .vocab_size = 100};

Step some_step() {
  Step step;
  step.batch = {.tokens = {1, 2, 3},
                .positions = {0, 1, 64},
                .list_offsets = {0, 0, 0},
                .page_lists = {2, 3},
                .outputs = {0, 2},
                .hidden_outputs = {1}};
  step.requests = {{.position = 1, .wants_logits = true},
                   {.position = 65,
                    .sampling = {.temperature = 0.7f, .top_k = 5, .top_p = 0.9f, .seed = ~0ull},
                    .wants_token = true}};
  return step;
}

std::vector<std::byte> encoded(const Step& step) {
  std::vector<std::byte> bytes;
  encode_step(step, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("a step arrives as it was sent") {
  const Step sent = some_step();
  Step got;
  got.is_stop = true;  // leftovers of an earlier step
  got.requests.resize(5);
  REQUIRE(decode_step(encoded(sent), kLimits, got).ok());
  CHECK(!got.is_stop);
  CHECK(got.batch.tokens == sent.batch.tokens);
  CHECK(got.batch.positions == sent.batch.positions);
  CHECK(got.batch.list_offsets == sent.batch.list_offsets);
  CHECK(got.batch.page_lists == sent.batch.page_lists);
  CHECK(got.batch.outputs == sent.batch.outputs);
  CHECK(got.batch.hidden_outputs == sent.batch.hidden_outputs);
  REQUIRE(got.requests.size() == 2);
  CHECK(got.requests[0].wants_logits);
  CHECK(!got.requests[0].wants_token);
  CHECK(got.requests[1].wants_token);
  CHECK(got.requests[1].position == 65);
  CHECK(got.requests[1].sampling.temperature == 0.7f);
  CHECK(got.requests[1].sampling.top_k == 5);
  CHECK(got.requests[1].sampling.top_p == 0.9f);
  CHECK(got.requests[1].sampling.seed == ~0ull);
  CHECK(encoded(sent).size() <= step_bytes_max(kLimits));
}

TEST_CASE("a stop arrives") {
  Step stop;
  stop.is_stop = true;
  Step got;
  REQUIRE(decode_step(encoded(stop), kLimits, got).ok());
  CHECK(got.is_stop);
}

TEST_CASE("truncated, lengthened and scrambled steps are corrupt or sound, never a crash") {
  const std::vector<std::byte> whole = encoded(some_step());
  Step got;
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(!decode_step(std::span(whole).first(size), kLimits, got).ok());
  }
  std::vector<std::byte> longer = whole;
  longer.push_back({});
  CHECK(!decode_step(longer, kLimits, got).ok());
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    std::vector<std::byte> changed = whole;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = std::byte(random());
    if (decode_step(changed, kLimits, got).ok()) CHECK(check_batch(got.batch, kLimits).ok());
  }
}

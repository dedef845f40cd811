#include "engine/schedule/step.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <random>

using namespace lockstep;

namespace {

constexpr BatchLimits kBatchLimits{
    .tokens_max = 8, .page_list_entries_max = 4, .pages = 4, .vocab_size = 100};

Step some_step() {
  Step step;
  step.batch = {.tokens = {1, 2, 3},
                .positions = {0, 1, 64},
                .list_offsets = {0, 0, 0},
                .page_lists = {2, 3},
                .outputs = {0, 2},
                .hidden_outputs = {1}};
  step.requests = {{.position = 1, .previous_token = 1, .wants_logits = true},
                   {.position = 65, .previous_token = 3, .slot = 2, .wants_token = true}};
  return step;
}

Step step_with_orders() {
  Step step = some_step();
  step.orders.released = {1, 2};
  step.orders.grammars = {{3, R"({"regex": "a"})", {7, 9}}, {4, "", {}}};
  SlotOrder& slot = step.orders.slots.emplace_back(SlotOrder{.slot = 2, .grammar = 3});
  slot.setup = {.sampling = {.temperature = 0.7f,
                             .top_k = 5,
                             .top_p = 0.9f,
                             .seed = ~0ull,
                             .min_p = 0.1f,
                             .typical_p = 0.2f,
                             .repetition_penalty = 1.3f,
                             .penalty_tokens = 64,
                             .presence_penalty = 0.4f,
                             .frequency_penalty = 0.5f,
                             .dry_multiplier = 0.6f,
                             .dry_base = 1.7f,
                             .dry_allowed_length = 3,
                             .dry_tokens = 256},
                .top_logprobs = 4,
                .answer_begin = 64,
                .begin = 62,
                .tokens = {5, 6, 7},
                .logit_bias = {{11, -2.5f}, {12, 100}},
                .stop_ids = {7},
                .min_tokens = 12,
                .dry_breakers = {13, 14}};
  step.orders.slots.push_back({.slot = 0, .grammar = -1});
  return step;
}

Step step_with_page_orders() {
  Step step = step_with_orders();
  step.pages.saves = {{3, PageKey{std::byte{1}}}, {0, PageKey{std::byte{2}}}};
  step.pages.loads = {{2, PageKey{std::byte{3}}}};
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
  REQUIRE(decode_step(encoded(sent), kBatchLimits, got).ok());
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
  CHECK(got.requests[1].previous_token == 3);
  CHECK(got.requests[1].slot == 2);
  CHECK(got.requests[0].position == 1);
  CHECK(got.requests[0].previous_token == 1);
  CHECK(got.requests[0].slot == -1);
  CHECK(got.orders.empty());
  CHECK(encoded(sent).size() <= plain_step_bytes_max(kBatchLimits));
}

TEST_CASE("the states of recurrent layers arrive with the step, and none without such layers") {
  BatchLimits limits = kBatchLimits;
  limits.states = 3;
  Step sent = some_step();
  sent.batch.states_from = {-1, 0, 2};
  sent.batch.states_to = {0, 2, 1};
  Step got;
  REQUIRE(decode_step(encoded(sent), limits, got).ok());
  CHECK(got.batch.states_from == sent.batch.states_from);
  CHECK(got.batch.states_to == sent.batch.states_to);
  CHECK(got.requests.size() == 2);
  CHECK(encoded(sent).size() <= plain_step_bytes_max(limits));
  CHECK_FALSE(decode_step(encoded(sent), kBatchLimits, got).ok());
  CHECK_FALSE(decode_step(encoded(some_step()), limits, got).ok());
  const auto is_refused = [&](size_t token, int32_t from, int32_t to) {
    Step step = sent;
    step.batch.states_from[token] = from;
    step.batch.states_to[token] = to;
    return !decode_step(encoded(step), limits, got).ok();
  };
  CHECK_FALSE(is_refused(1, 1, 1));
  CHECK(is_refused(1, 3, 1));  // there is no such state
  CHECK(is_refused(1, 1, 3));
  CHECK(is_refused(1, 1, -1));
  CHECK(is_refused(1, -1, 1));  // not at the beginning of its sequence
  CHECK(is_refused(0, 0, 0));   // at the beginning
}

TEST_CASE("orders arrive with the step as they were sent") {
  const Step sent = step_with_orders();
  const auto bytes = encoded(sent);
  CHECK(bytes.size() % sizeof(float) == 0);
  CHECK(bytes.size() <= step_bytes_max(kBatchLimits));
  Step got;
  REQUIRE(decode_step(bytes, kBatchLimits, got).ok());
  CHECK(got.orders.released == sent.orders.released);
  REQUIRE(got.orders.grammars.size() == 2);
  CHECK(got.orders.grammars[0].grammar == 3);
  CHECK(got.orders.grammars[0].constraint == R"({"regex": "a"})");
  CHECK(got.orders.grammars[0].end_tokens == std::vector<int32_t>{7, 9});
  CHECK(got.orders.grammars[1].constraint.empty());
  REQUIRE(got.orders.slots.size() == 2);
  CHECK(got.orders.slots[0].slot == 2);
  CHECK(got.orders.slots[0].grammar == 3);
  CHECK(got.orders.slots[1].grammar == -1);
  const ChoiceSetup& setup = got.orders.slots[0].setup;
  CHECK(setup.sampling == sent.orders.slots[0].setup.sampling);
  CHECK(setup.top_logprobs == 4);
  CHECK(got.orders.slots[1].setup.sampling == SamplingOptions{});
  CHECK(got.orders.slots[1].setup.top_logprobs == -1);
  CHECK(setup.answer_begin == 64);
  CHECK(setup.begin == 62);
  CHECK(setup.tokens == std::vector<int32_t>{5, 6, 7});
  REQUIRE(setup.logit_bias.size() == 2);
  CHECK(setup.logit_bias[0].token == 11);
  CHECK(setup.logit_bias[1].bias == 100);
  CHECK(setup.stop_ids == std::vector<int32_t>{7});
  CHECK(setup.min_tokens == 12);
  CHECK(setup.dry_breakers == std::vector<int32_t>{13, 14});
}

TEST_CASE("orders that break a limit are refused") {
  const auto is_refused = [](const std::function<void(ChoiceOrders&)>& change) {
    Step step = step_with_orders();
    change(step.orders);
    Step got;
    return !decode_step(encoded(step), kBatchLimits, got).ok();
  };
  CHECK(!is_refused([](ChoiceOrders&) {}));
  CHECK(is_refused([](ChoiceOrders& o) { o.released.push_back(-1); }));
  CHECK(is_refused([](ChoiceOrders& o) { o.released.assign(9, 1); }));
  CHECK(is_refused([](ChoiceOrders& o) { o.grammars[0].grammar = kGrammarsMax; }));
  CHECK(is_refused(
      [](ChoiceOrders& o) { o.grammars[0].constraint.assign(kConstraintBytesMax + 1, ' '); }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].slot = -1; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].slot = 9; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].grammar = kGrammarsMax; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.begin = 65; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.sampling.top_k = -1; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.top_logprobs = -2; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.top_logprobs = kTopLogprobsMax + 1; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.begin = 60; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.tokens[0] = 100; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.logit_bias[0].bias = NAN; }));
  CHECK(is_refused([](ChoiceOrders& o) { o.slots[0].setup.logit_bias.resize(2000); }));
}

TEST_CASE("orders to the draft layer arrive with the step, and impossible ones are refused") {
  const auto with_drafts = [] {
    Step step = step_with_page_orders();
    step.drafts.pass.batch = {.tokens = {2, 3},
                              .positions = {0, 1},
                              .list_offsets = {0, 1},
                              .page_lists = {2, 1},
                              .outputs = {1}};
    step.drafts.pass.hidden_rows = {4, 9};
    step.drafts.guesses = {{2, 1}};
    return step;
  };
  const Step sent = with_drafts();
  const auto bytes = encoded(sent);
  CHECK(bytes.size() % sizeof(float) == 0);
  CHECK(bytes.size() <= step_bytes_max(kBatchLimits));
  Step got = with_drafts();  // leftovers of an earlier step
  REQUIRE(decode_step(bytes, kBatchLimits, got).ok());
  CHECK(got.drafts.pass.batch.tokens == sent.drafts.pass.batch.tokens);
  CHECK(got.drafts.pass.batch.positions == sent.drafts.pass.batch.positions);
  CHECK(got.drafts.pass.batch.list_offsets == sent.drafts.pass.batch.list_offsets);
  CHECK(got.drafts.pass.batch.page_lists == sent.drafts.pass.batch.page_lists);
  CHECK(got.drafts.pass.batch.outputs == sent.drafts.pass.batch.outputs);
  CHECK(got.drafts.pass.hidden_rows == sent.drafts.pass.hidden_rows);
  REQUIRE(got.drafts.guesses.size() == 1);
  CHECK(got.drafts.guesses[0].count == 2);
  CHECK(got.drafts.guesses[0].at == 1);
  CHECK(got.pages.saves.size() == sent.pages.saves.size());
  CHECK(got.orders.slots.size() == sent.orders.slots.size());
  REQUIRE(decode_step(encoded(some_step()), kBatchLimits, got).ok());
  CHECK(got.drafts.empty());
  const auto is_refused = [&](const std::function<void(DraftOrders&)>& change) {
    Step step = with_drafts();
    change(step.drafts);
    return !decode_step(encoded(step), kBatchLimits, got).ok();
  };
  CHECK(!is_refused([](DraftOrders& o) { o.guesses[0].count = 0; }));
  CHECK(is_refused([](DraftOrders& o) { o.guesses[0].count = 3; }));  // beyond the batch
  CHECK(is_refused([](DraftOrders& o) { o.guesses[0].count = -1; }));
  CHECK(is_refused([](DraftOrders& o) { o.guesses[0].at = -1; }));
  CHECK(is_refused([](DraftOrders& o) { o.guesses[0].at = 0x7fffffff; }));
  CHECK(is_refused([](DraftOrders& o) { o.guesses.emplace_back(); }));
  CHECK(is_refused([](DraftOrders& o) { o.pass.batch.outputs[0] = 2; }));  // beyond the pass
  CHECK(is_refused([](DraftOrders& o) { o.pass.batch.outputs[0] = -1; }));
  CHECK(is_refused([](DraftOrders& o) {
    o.pass.batch.outputs = {1, 1};
    o.guesses.resize(2);
  }));
  CHECK(is_refused([](DraftOrders& o) { o.pass.hidden_rows.pop_back(); }));
  CHECK(is_refused([](DraftOrders& o) { o.pass.batch.page_lists.assign(5, 0); }));
  for (size_t size = 0; size < bytes.size(); size += sizeof(int32_t)) {
    CHECK_FALSE(decode_step(std::span(bytes).first(size), kBatchLimits, got).ok());
  }
}

TEST_CASE("orders for guesses of the next steps arrive, and impossible ones are refused") {
  const auto with_guesses = [] {
    Step step = step_with_page_orders();
    step.next_guesses = {{.first_row = 0, .rows = 1, .token_after = 7, .count = 0},
                         {.first_row = 1, .rows = 2, .token_after = -1, .count = 3}};
    return step;
  };
  const std::vector<std::byte> bytes = encoded(with_guesses());
  CHECK(bytes.size() <= step_bytes_max(kBatchLimits));
  Step got;
  REQUIRE(decode_step(bytes, kBatchLimits, got).ok());
  REQUIRE(got.next_guesses.size() == 2);
  CHECK(got.next_guesses[0].token_after == 7);
  CHECK(got.next_guesses[1].first_row == 1);
  CHECK(got.next_guesses[1].rows == 2);
  CHECK(got.next_guesses[1].count == 3);
  CHECK(got.pages.loads.size() == 1);
  CHECK(got.orders.slots.size() == 2);
  REQUIRE(decode_step(encoded(some_step()), kBatchLimits, got).ok());
  CHECK(got.next_guesses.empty());
  const auto is_refused = [&](const std::function<void(Step&)>& change) {
    Step step = with_guesses();
    change(step);
    return !decode_step(encoded(step), kBatchLimits, got).ok();
  };
  CHECK(!is_refused([](Step&) {}));
  CHECK(is_refused([](Step& s) { s.next_guesses[1].first_row = 0; }));  // rows of the other one
  CHECK(is_refused([](Step& s) { s.next_guesses[0].first_row = -1; }));
  CHECK(is_refused([](Step& s) { s.next_guesses[0].rows = 0; }));
  CHECK(is_refused([](Step& s) { s.next_guesses[1].rows = 3; }));  // beyond the batch
  CHECK(is_refused([](Step& s) { s.next_guesses[1].rows = 0x7fffffff; }));
  CHECK(is_refused([](Step& s) { s.next_guesses[0].token_after = 100; }));
  CHECK(is_refused([](Step& s) { s.next_guesses[0].token_after = -2; }));
  CHECK(is_refused([](Step& s) { s.next_guesses[0].count = -1; }));
  CHECK(is_refused([](Step& s) { s.next_guesses[0].count = 6; }));  // more than a batch has
  CHECK(is_refused([](Step& s) { s.next_guesses.resize(4); }));
  CHECK(is_refused([](Step& s) {
    s.drafts.pass.batch = {.tokens = {2}, .positions = {0}, .list_offsets = {0}, .page_lists = {2}};
    s.drafts.pass.hidden_rows = {0};
  }));
  for (size_t size = 0; size < bytes.size(); size += sizeof(int32_t)) {
    CHECK_FALSE(decode_step(std::span(bytes).first(size), kBatchLimits, got).ok());
  }
}

TEST_CASE("page orders arrive with the step, even if it contains nothing else") {
  Step lone;
  lone.pages.loads = {{1, PageKey{std::byte{9}}}};
  for (const Step& sent : {step_with_page_orders(), lone}) {
    const auto bytes = encoded(sent);
    CHECK(bytes.size() % sizeof(float) == 0);
    CHECK(bytes.size() <= step_bytes_max(kBatchLimits));
    Step got = step_with_page_orders();  // leftovers of an earlier step
    REQUIRE(decode_step(bytes, kBatchLimits, got).ok());
    REQUIRE(got.pages.saves.size() == sent.pages.saves.size());
    REQUIRE(got.pages.loads.size() == 1);
    for (size_t i = 0; i < sent.pages.saves.size(); ++i) {
      CHECK(got.pages.saves[i].page == sent.pages.saves[i].page);
      CHECK(got.pages.saves[i].key == sent.pages.saves[i].key);
    }
    CHECK(got.pages.loads[0].page == sent.pages.loads[0].page);
    CHECK(got.pages.loads[0].key == sent.pages.loads[0].key);
    CHECK(got.batch.tokens == sent.batch.tokens);
    CHECK(got.orders.released == sent.orders.released);
    CHECK(got.orders.slots.size() == sent.orders.slots.size());
  }
  Step got = step_with_page_orders();
  REQUIRE(decode_step(encoded(some_step()), kBatchLimits, got).ok());
  CHECK(got.pages.empty());
}

TEST_CASE("the largest page orders fit, and more of them or unknown pages are refused") {
  const auto is_refused = [](const std::function<void(PageOrders&)>& change) {
    Step step = step_with_page_orders();
    change(step.pages);
    Step got;
    CHECK(encoded(step).size() <= step_bytes_max(kBatchLimits) + 100);
    return !decode_step(encoded(step), kBatchLimits, got).ok();
  };
  const PageOrder order{.page = 3};
  CHECK(!is_refused([&](PageOrders& o) {
    o.saves.assign(kPageSavesMax, order);
    o.loads.assign(kPageLoadsMax, order);
  }));
  CHECK(is_refused([&](PageOrders& o) { o.saves.assign(kPageSavesMax + 1, order); }));
  CHECK(is_refused([&](PageOrders& o) { o.loads.assign(kPageLoadsMax + 1, order); }));
  CHECK(is_refused([](PageOrders& o) { o.saves[0].page = -1; }));
  CHECK(is_refused([](PageOrders& o) { o.loads[0].page = kBatchLimits.pages; }));
}

TEST_CASE("orders for states of recurrent layers arrive with the step, within its limits") {
  BatchLimits limits = kBatchLimits;
  limits.states = 3;
  Step sent;  // no tokens, so no states of them
  sent.pages.loads = {{1, PageKey{std::byte{9}}}};
  const size_t without = encoded(sent).size();
  sent.pages.state_saves = {{2, PageKey{std::byte{7}}}};
  sent.pages.state_loads = {{1, PageKey{std::byte{8}}}};
  const auto bytes = encoded(sent);
  CHECK(bytes.size() == without + 2 * (sizeof(int32_t) + sizeof(PageKey)));
  CHECK(bytes.size() <= step_bytes_max(limits));
  Step got = step_with_page_orders();  // leftovers of an earlier step
  REQUIRE(decode_step(bytes, limits, got).ok());
  CHECK(got.pages.saves.empty());
  REQUIRE(got.pages.loads.size() == 1);
  REQUIRE(got.pages.state_saves.size() == 1);
  REQUIRE(got.pages.state_loads.size() == 1);
  CHECK(got.pages.state_saves[0].state == 2);
  CHECK(got.pages.state_saves[0].key == sent.pages.state_saves[0].key);
  CHECK(got.pages.state_loads[0].state == 1);
  CHECK(got.pages.state_loads[0].key == sent.pages.state_loads[0].key);
  CHECK_FALSE(decode_step(bytes, kBatchLimits, got).ok());  // a model without such layers
  const auto is_refused = [&](const std::function<void(PageOrders&)>& change) {
    Step step = sent;
    change(step.pages);
    return !decode_step(encoded(step), limits, got).ok();
  };
  CHECK_FALSE(is_refused([](PageOrders& o) { o.loads.clear(); }));
  CHECK(is_refused([](PageOrders& o) { o.state_saves[0].state = 3; }));
  CHECK(is_refused([](PageOrders& o) { o.state_loads[0].state = -1; }));
  CHECK(is_refused([](PageOrders& o) { o.state_saves.assign(kStateSavesMax + 1, {}); }));
  CHECK(is_refused([](PageOrders& o) { o.state_loads.assign(kStateLoadsMax + 1, {}); }));
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode_step(std::span(bytes).first(size), limits, got).ok());
  }
}

TEST_CASE("window pages and their orders arrive, and those beyond the limits are refused") {
  BatchLimits limits = kBatchLimits;
  limits.window_pages = 2;
  limits.reach = 16;
  Step sent = some_step();  // the token at 64 reaches back to 49
  sent.batch.tokens.push_back(4);
  sent.batch.positions.push_back(128);  // to 113
  sent.batch.list_offsets = {0, 0, 0, 1};
  sent.batch.page_lists = {2, 0, 1, 3};
  sent.batch.window_lists = {1, 0, 0, 1};
  sent.batch.window_offsets = {0, 0, 0, 1};
  sent.pages.state_saves.assign(kWindowSavesMax, {1, {}});
  sent.pages.state_loads.assign(kWindowLoadsMax, {0, {}});
  Step got;
  const auto bytes = encoded(sent);
  CHECK(bytes.size() <= step_bytes_max(limits));
  REQUIRE(decode_step(bytes, limits, got).ok());
  CHECK(got.batch.window_lists == sent.batch.window_lists);
  CHECK(got.batch.window_offsets == sent.batch.window_offsets);
  CHECK(got.pages.state_saves.size() == kWindowSavesMax);
  CHECK(got.pages.state_loads.size() == kWindowLoadsMax);
  const auto is_refused = [&](auto change) {
    Step step = sent;
    change(step);
    return !decode_step(encoded(step), limits, got).ok();
  };
  CHECK_FALSE(is_refused([](Step&) {}));
  CHECK_FALSE(is_refused([](Step& s) {  // pages before the reach need not be there
    s.batch.window_lists = {1, 0};
    s.batch.window_offsets = {0, 0, 0, -1};
  }));
  CHECK(is_refused([](Step& s) { s.batch.window_lists[3] = 2; }));
  CHECK(is_refused([](Step& s) { s.batch.window_lists[0] = -1; }));
  CHECK(is_refused([](Step& s) { s.batch.window_lists.pop_back(); }));
  CHECK(is_refused([](Step& s) { s.batch.window_lists.push_back(0); }));  // more than pages
  CHECK(is_refused([](Step& s) { s.batch.window_offsets[3] = -2; }));     // reaches to page 1
  CHECK(is_refused([](Step& s) { s.batch.window_offsets[3] = 2; }));
  CHECK(is_refused([](Step& s) { s.batch.window_offsets[0] = -1; }));
  CHECK(is_refused([](Step& s) { s.batch.window_offsets[0] = INT32_MIN; }));
  CHECK(is_refused([](Step& s) { s.batch.window_offsets[3] = INT32_MAX; }));
  CHECK(is_refused([](Step& s) { s.batch.window_offsets.clear(); }));
  CHECK(is_refused([](Step& s) { s.pages.state_saves[0].state = 2; }));
  CHECK(is_refused([](Step& s) { s.pages.state_loads[0].state = -1; }));
  CHECK(is_refused([](Step& s) { s.pages.state_saves.push_back({}); }));
  CHECK(is_refused([](Step& s) { s.pages.state_loads.push_back({}); }));
  CHECK_FALSE(decode_step(bytes, kBatchLimits, got).ok());  // a model without them
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode_step(std::span(bytes).first(size), limits, got).ok());
  }
}

TEST_CASE("a step without orders spends no bytes on them") {
  Step step;
  step.batch.tokens = {1};
  step.batch.positions = step.batch.list_offsets = step.batch.page_lists = {0};
  CHECK(encoded(step).size() == (6 + 4) * sizeof(int32_t));
}

TEST_CASE("a step of sequences that decode has two words for the choice of each") {
  Step step;
  for (int32_t i = 0; i < 4; ++i) {
    step.batch.tokens.push_back(i);
    step.batch.positions.push_back(0);
    step.batch.list_offsets.push_back(i);
    step.batch.page_lists.push_back(i);
    step.batch.outputs.push_back(i);
    step.requests.push_back({.position = 1, .previous_token = i, .slot = i, .wants_token = true});
  }
  CHECK(encoded(step).size() == (6 + 4 * (5 + 2)) * sizeof(int32_t));
}

TEST_CASE("a stop arrives") {
  Step stop;
  stop.is_stop = true;
  Step got;
  REQUIRE(decode_step(encoded(stop), kBatchLimits, got).ok());
  CHECK(got.is_stop);
}

TEST_CASE("a measurement arrives, and is forgotten by the next step") {
  Step sent;
  sent.measured = RankPair{3, LinkGraph::kRanksMax - 1};
  Step got;
  REQUIRE(decode_step(encoded(sent), kBatchLimits, got).ok());
  CHECK(got.measured == sent.measured);
  CHECK(!got.is_stop);
  REQUIRE(decode_step(encoded(some_step()), kBatchLimits, got).ok());
  CHECK(!got.measured);
}

TEST_CASE("truncated, lengthened and scrambled steps are corrupt or valid, never a crash") {
  for (const Step& step : {some_step(), step_with_orders(), step_with_page_orders()}) {
    const std::vector<std::byte> whole = encoded(step);
    Step got;
    for (size_t size = 0; size < whole.size(); ++size) {
      CHECK(!decode_step(std::span(whole).first(size), kBatchLimits, got).ok());
    }
    std::vector<std::byte> longer = whole;
    longer.push_back({});
    CHECK(!decode_step(longer, kBatchLimits, got).ok());
    std::mt19937 random(1);
    for (int i = 0; i < 20000; ++i) {
      std::vector<std::byte> changed = whole;
      for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = std::byte(random());
      if (decode_step(changed, kBatchLimits, got).ok()) {
        CHECK(check_batch(got.batch, kBatchLimits).ok());
      }
    }
  }
}

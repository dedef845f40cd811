#include "engine/schedule/scheduler.h"

#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <string>

#include "support/event_reader.h"

using namespace lockstep;

namespace {

constexpr SchedulerLimits kTwoSequences{
    .sequences_max = 2, .waiting_max = 2, .tokens_max = 10, .context = 100, .vocab_size = 50};

struct Events final : EventReader {
  void on_token(uint64_t request, int32_t token) override { tokens[request].push_back(token); }
  void on_row(uint64_t request, const std::vector<float>& row) override {
    rows[request] += row.empty() ? 0 : 1;
  }
  void on_end(uint64_t request, FinishReason reason) override {
    ends[request] = reason == FinishReason::kStop ? "stop" : "length";
  }
  void on_error(uint64_t request, const Error& error) override { ends[request] = error.message; }
  void on_progress(uint64_t request, const RequestEvent::Progress& progress) override {
    done[request].push_back(progress.done);
  }

  std::map<uint64_t, std::vector<int32_t>> tokens;
  std::map<uint64_t, int> rows;
  std::map<uint64_t, std::string> ends;
  std::map<uint64_t, std::vector<int>> done;
};

// Plans one step and completes it with tokens that count up from `token`.
Step run_step(Scheduler& scheduler, Events& events, int32_t token) {
  static const float kRow[1] = {0};
  Step step;
  REQUIRE(scheduler.plan(step));
  scheduler.report_begun(events);
  REQUIRE(step.batch.outputs.size() == step.requests.size());
  std::vector<SampledToken> choices;
  for (const ChoiceRequest& request : step.requests) {
    SampledToken& choice = choices.emplace_back();
    if (request.wants_token) choice.token = token++;
    if (request.wants_logits) choice.logits = kRow;
  }
  REQUIRE(scheduler.complete(choices, {}, events).ok());
  return step;
}

bool is_idle(Scheduler& scheduler) {
  Step step;
  return scheduler.steps_in_flight() == 0 && !scheduler.plan(step);
}

std::vector<int32_t> prompt_of(int size) {
  return std::vector<int32_t>(static_cast<size_t>(size), 7);
}

}  // namespace

TEST_CASE("a request is fed, sampled and ended at max_tokens") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(3), .max_tokens = 2}).ok());
  const Step first = run_step(scheduler, events, 20);
  CHECK(first.batch.tokens == std::vector<int32_t>{7, 7, 7});
  CHECK(first.batch.positions == std::vector<int32_t>{0, 1, 2});
  CHECK(first.batch.outputs == std::vector<int32_t>{2});
  CHECK(first.requests[0].position == 3);
  const Step second = run_step(scheduler, events, 21);
  CHECK(second.batch.tokens == std::vector<int32_t>{20});
  CHECK(second.batch.positions == std::vector<int32_t>{3});
  CHECK(events.tokens[1] == std::vector<int32_t>{20, 21});
  CHECK(events.ends[1] == "length");
  CHECK(is_idle(scheduler));
}

TEST_CASE("NaN logits end only their own sequence, and say after how many tokens") {
  static const float kRow[1] = {0};
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(
      scheduler.submit(1, {.prompt = prompt_of(4), .max_tokens = 2, .prompt_logits = true}).ok());
  REQUIRE(scheduler.submit(2, {.prompt = prompt_of(2), .max_tokens = 2}).ok());
  Step step;
  scheduler.plan(step);
  REQUIRE(step.requests.size() == 5);
  std::vector<SampledToken> choices(5, SampledToken{.logits = kRow});
  choices[0] = {.token = 9};  // the shorter prompt goes first
  choices[2].is_number = choices[3].is_number = false;
  CHECK(scheduler.complete(choices, {}, events).ok());
  CHECK(events.rows[1] == 1);
  CHECK(events.ends[1].starts_with("the logits after 2 tokens are not numbers (NaN or infinite)"));
  CHECK(events.tokens[2] == std::vector<int32_t>{9});
  run_step(scheduler, events, 10);
  CHECK(events.ends[2] == "length");
  CHECK(is_idle(scheduler));
}

TEST_CASE("the progress of a prompt is reported once a step, to those who ask for it") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(25), .max_tokens = 2, .reports_progress = true})
              .ok());
  for (int step = 0; step < 4; ++step) run_step(scheduler, events, 20 + step);
  CHECK(events.done[1] == std::vector<int>{0, 10, 20});
  CHECK(events.ends[1] == "length");
  REQUIRE(scheduler.submit(2, {.prompt = prompt_of(25), .max_tokens = 1}).ok());
  for (int step = 0; step < 3; ++step) run_step(scheduler, events, 20);
  CHECK(events.ends[2] == "length");
  CHECK(events.done.size() == 1);
}

TEST_CASE("an end of sequence is not reported as a token") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(1), .max_tokens = 9, .stop_ids = {2, 31}}).ok());
  run_step(scheduler, events, 30);
  run_step(scheduler, events, 31);
  CHECK(events.tokens[1] == std::vector<int32_t>{30});
  CHECK(events.ends[1] == "stop");
}

TEST_CASE("a long prompt is fed in chunks next to a decoding sequence, which goes first") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(2), .max_tokens = 50}).ok());
  run_step(scheduler, events, 10);
  REQUIRE(scheduler.submit(2, {.prompt = prompt_of(25), .max_tokens = 1}).ok());
  const Step step = run_step(scheduler, events, 11);
  CHECK(step.batch.token_count() == kTwoSequences.tokens_max);
  CHECK(step.batch.tokens[0] == 10);
  CHECK(step.batch.outputs.size() == 1);
  for (int i = 0; i < 2; ++i) run_step(scheduler, events, 12 + i);
  CHECK(events.ends[2] == "length");
  CHECK(events.tokens[1].size() == 4);
}

TEST_CASE("a request's own chunk size is used, and prompt logits are computed for all its tokens") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(
      scheduler
          .submit(4, {.prompt = prompt_of(5), .max_tokens = 0, .prompt_logits = true, .chunk = 2})
          .ok());
  for (const int expected : {2, 2, 1}) {
    CHECK(run_step(scheduler, events, 0).batch.token_count() == expected);
  }
  CHECK(events.rows[4] == 5);
  CHECK(events.tokens[4].empty());
  CHECK(events.ends[4] == "length");
}

TEST_CASE("a limited number runs together, others wait for their turn, and more are refused") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  for (uint64_t id = 1; id <= 2; ++id) {
    REQUIRE(scheduler.submit(id, {.prompt = prompt_of(1), .max_tokens = 3}).ok());
  }
  run_step(scheduler, events, 10);
  for (uint64_t id = 3; id <= 4; ++id) {
    REQUIRE(scheduler.submit(id, {.prompt = prompt_of(1), .max_tokens = 1}).ok());
  }
  const Status refused = scheduler.submit(5, {.prompt = prompt_of(1)});
  REQUIRE(!refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(run_step(scheduler, events, 12).batch.token_count() == 2);
  run_step(scheduler, events, 14);
  CHECK(events.ends.size() == 2);
  run_step(scheduler, events, 16);
  CHECK(events.ends.size() == 4);
}

TEST_CASE("requests that can never run are refused with the reason") {
  Scheduler scheduler(kTwoSequences);
  CHECK(scheduler.submit(1, {.prompt = {}}).error().code == ErrorCode::kInvalidArgument);
  CHECK(scheduler.submit(1, {.prompt = {50}}).error().code == ErrorCode::kInvalidArgument);
  CHECK(scheduler.submit(1, {.prompt = {-1}}).error().code == ErrorCode::kInvalidArgument);
  const Status long_prompt = scheduler.submit(1, {.prompt = prompt_of(101)});
  CHECK(long_prompt.error().code == ErrorCode::kExhausted);
  CHECK(long_prompt.error().message.find("101 tokens, the context holds 100") != std::string::npos);
  CHECK(is_idle(scheduler));
}

TEST_CASE("a full context ends the sequence") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(99), .max_tokens = 50}).ok());
  for (int i = 0; i < 20 && !events.ends.contains(1); ++i) run_step(scheduler, events, 5);
  CHECK(events.ends[1] == "length");
  CHECK(events.tokens[1].size() == 2);  // the last one is chosen at position 99, not fed
}

TEST_CASE("cancelled requests leave at once, waiting or running, and free their state") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  for (uint64_t id = 1; id <= 3; ++id) {
    if (id == 3) run_step(scheduler, events, 1);
    REQUIRE(scheduler.submit(id, {.prompt = prompt_of(4), .max_tokens = 40}).ok());
  }
  CHECK(scheduler.page_counts().free < scheduler.page_counts().all);
  CHECK(scheduler.cancel(1));
  CHECK(scheduler.cancel(3));
  CHECK(!scheduler.cancel(1));
  CHECK(!scheduler.cancel(77));
  CHECK(run_step(scheduler, events, 9).batch.token_count() == 1);
  CHECK(scheduler.cancel(2));
  CHECK(is_idle(scheduler));
  CHECK(scheduler.page_counts().free == scheduler.page_counts().all);
  CHECK(events.ends.empty());
}

TEST_CASE("pages never run out, however full the contexts get") {
  Scheduler scheduler(kTwoSequences);
  Events events;
  uint64_t id = 0;
  for (int round = 0; round < 300; ++round) {
    while (
        scheduler.submit(++id, {.prompt = prompt_of(1 + round % 100), .max_tokens = 1 + round % 90})
            .ok()) {
    }
    run_step(scheduler, events, 3);
  }
  CHECK(events.ends.size() > 20);
}

namespace {

// Steps in flight in a pipeline, oldest first, and the choices they ask for.
class StepsUnderWay {
 public:
  StepsUnderWay(Scheduler& scheduler, Events& events) : scheduler_(scheduler), events_(events) {}

  // The planned step, or null.
  const Step* plan() {
    Step step;
    if (!scheduler_.plan(step)) return nullptr;
    steps_.push_back(std::move(step));
    return &steps_.back();
  }
  void plan_all(int most) {
    while (static_cast<int>(steps_.size()) < most && plan()) {
    }
  }
  void complete(int32_t token) {
    static const float kRow[1] = {0};
    std::vector<SampledToken> choices;
    for (const ChoiceRequest& request : steps_.front().requests) {
      SampledToken& choice = choices.emplace_back();
      if (request.wants_token) choice.token = token;
      if (request.wants_logits) choice.logits = kRow;
    }
    const std::vector<float> hidden(steps_.front().batch.hidden_outputs.size(), 1.0f);
    REQUIRE(scheduler_.complete(choices, hidden, events_).ok());
    steps_.pop_front();
  }
  const std::deque<Step>& steps() const { return steps_; }

 private:
  Scheduler& scheduler_;
  Events& events_;
  std::deque<Step> steps_;
};

SchedulerLimits pipeline_limits(int stages, int sequences) {
  return {.sequences_max = sequences,
          .waiting_max = 100,
          .tokens_max = 512,
          .context = 2000,
          .vocab_size = 50,
          .stages = stages};
}

// The pages that such a step may write.
std::set<int32_t> pages_written(const Step& step) {
  std::set<int32_t> pages;
  const Batch& batch = step.batch;
  for (size_t i = 0; i < batch.tokens.size(); ++i) {
    const int32_t entry = batch.list_offsets[i] + batch.positions[i] / 64;
    pages.insert(batch.page_lists[static_cast<size_t>(entry)]);
  }
  return pages;
}

}  // namespace

TEST_CASE("a decoding sequence is in at most one step in flight") {
  Scheduler scheduler(pipeline_limits(3, 4));
  Events events;
  StepsUnderWay under_way(scheduler, events);
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(3), .max_tokens = 3}).ok());
  REQUIRE(under_way.plan());
  CHECK(!under_way.plan());  // the next token needs the choice
  CHECK(scheduler.steps_in_flight() == 1);
  under_way.complete(20);
  REQUIRE(under_way.plan());
  CHECK(under_way.steps().front().batch.positions == std::vector<int32_t>{3});
  CHECK(!under_way.plan());
  under_way.complete(21);
  under_way.plan_all(9);
  under_way.complete(22);
  CHECK(events.tokens[1] == std::vector<int32_t>{20, 21, 22});
  CHECK(events.ends[1] == "length");
  CHECK(is_idle(scheduler));
}

TEST_CASE("decoding sequences are spread over the stages, and all progress") {
  for (const int sequences : {1, 2, 3, 4, 7, 8}) {
    CAPTURE(sequences);
    constexpr int kStages = 4;
    Scheduler scheduler(pipeline_limits(kStages, sequences));
    Events events;
    StepsUnderWay under_way(scheduler, events);
    for (int i = 0; i < sequences; ++i) {
      const auto id = static_cast<uint64_t>(i);
      REQUIRE(scheduler.submit(id, {.prompt = prompt_of(1), .max_tokens = 100}).ok());
    }
    const int share = (sequences + kStages - 1) / kStages;
    for (int round = 0; round < 12 * kStages; ++round) {
      under_way.plan_all(steps_in_flight_max(kStages));
      CHECK(static_cast<int>(under_way.steps().size()) == (sequences + share - 1) / share);
      for (const Step& step : under_way.steps()) CHECK(step.batch.token_count() <= share);
      under_way.complete(7);
    }
    for (int i = 0; i < sequences; ++i) {
      CHECK(events.tokens[static_cast<uint64_t>(i)].size() >= 11);
    }
  }
}

TEST_CASE("chunks of one prompt follow each other, and a prompt of one step is in flight whole") {
  CHECK(prompt_tokens_max(pipeline_limits(1, 1)) == 512);
  CHECK(prompt_tokens_max(pipeline_limits(2, 1)) == 128);
  CHECK(prompt_tokens_max(pipeline_limits(4, 1)) == 64);
  CHECK(prompt_tokens_max(pipeline_limits(8, 1)) == 64);
  CHECK(prompt_chunk(300, pipeline_limits(1, 1)) == 512);
  CHECK(prompt_chunk(300, pipeline_limits(2, 1)) == 75);
  CHECK(prompt_chunk(9, pipeline_limits(2, 1)) == 64);
  CHECK(prompt_chunk(9000, pipeline_limits(2, 1)) == 128);
  Scheduler scheduler(pipeline_limits(4, 2));
  Events events;
  StepsUnderWay under_way(scheduler, events);
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(300), .max_tokens = 1}).ok());
  under_way.plan_all(5);
  REQUIRE(under_way.steps().size() == 5);
  int next = 0;
  for (const Step& step : under_way.steps()) {
    CHECK(step.batch.positions.front() == next);
    next = step.batch.positions.back() + 1;
  }
  CHECK(next == 300);
  for (int i = 0; i < 4; ++i) under_way.complete(9);
  CHECK(events.ends.empty());
  under_way.complete(9);
  CHECK(events.tokens[1] == std::vector<int32_t>{9});
  CHECK(events.ends[1] == "length");
}

TEST_CASE("an embedding is reported once, after its last chunk has come back") {
  Scheduler scheduler(pipeline_limits(2, 2));
  Events events;
  StepsUnderWay under_way(scheduler, events);
  REQUIRE(
      scheduler
          .submit(1,
                  {.prompt = prompt_of(9), .max_tokens = 0, .pooling = Pooling::kMean, .chunk = 4})
          .ok());
  under_way.plan_all(3);
  REQUIRE(under_way.steps().size() == 3);
  under_way.complete(0);
  under_way.complete(0);
  CHECK(events.rows.empty());
  under_way.complete(0);
  CHECK(events.rows[1] == 1);
  CHECK(events.ends[1] == "length");
  CHECK(is_idle(scheduler));
}

TEST_CASE("pages of a cancelled sequence stay reserved until no step in flight writes them") {
  SchedulerLimits limits = pipeline_limits(2, 1);
  limits.context = 640;
  Scheduler scheduler(limits);
  Events events;
  StepsUnderWay under_way(scheduler, events);
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(600), .max_tokens = 5}).ok());
  under_way.plan_all(3);
  std::set<int32_t> written;
  for (const Step& step : under_way.steps()) written.merge(pages_written(step));
  CHECK(written.size() == 6);
  CHECK(scheduler.cancel(1));
  CHECK(!scheduler.cancel(1));
  const std::vector<int32_t> other(600, 8);
  REQUIRE(scheduler.submit(2, {.prompt = other, .max_tokens = 5}).ok());
  CHECK(!under_way.plan());  // its slot is not free yet
  under_way.complete(9);
  under_way.complete(9);
  CHECK(!under_way.plan());
  under_way.complete(9);
  REQUIRE(under_way.plan());
  CHECK(under_way.steps().front().batch.positions.front() == 0);
  CHECK(events.rows.empty());
  CHECK(events.tokens.empty());
}

TEST_CASE("a chunk with NaN logits ends its sequence, and later chunks report nothing") {
  static const float kRow[1] = {0};
  Scheduler scheduler(pipeline_limits(2, 1));
  Events events;
  REQUIRE(
      scheduler
          .submit(1, {.prompt = prompt_of(6), .max_tokens = 0, .prompt_logits = true, .chunk = 3})
          .ok());
  Step first, second, none;
  REQUIRE(scheduler.plan(first));
  REQUIRE(scheduler.plan(second));
  std::vector<SampledToken> choices(3, SampledToken{.logits = kRow});
  choices[2].is_number = false;
  REQUIRE(scheduler.complete(choices, {}, events).ok());
  CHECK(events.rows[1] == 2);
  CHECK(events.ends[1].starts_with("the logits after 3 tokens are not numbers"));
  CHECK(!scheduler.cancel(1));
  CHECK(!scheduler.plan(none));
  CHECK(scheduler.steps_in_flight() == 1);
  REQUIRE(scheduler.complete(choices, {}, events).ok());
  CHECK(events.rows[1] == 2);
  CHECK(is_idle(scheduler));
}

TEST_CASE("a wrong number of choices is an error") {
  Scheduler scheduler(pipeline_limits(2, 1));
  Events events;
  REQUIRE(scheduler.submit(1, {.prompt = prompt_of(2), .max_tokens = 5}).ok());
  Step step;
  REQUIRE(scheduler.plan(step));
  const std::vector<float> row(3);
  CHECK(scheduler.complete({}, {}, events).error().code == ErrorCode::kCorrupt);
  const std::vector<SampledToken> two(2);
  CHECK(!scheduler.complete(two, {}, events).ok());
  CHECK(!scheduler.complete({two.data(), 1}, row, events).ok());
  CHECK(scheduler.complete({two.data(), 1}, {}, events).ok());
}

TEST_CASE("many sequences with random cancels: no page is written for two, and all end") {
  for (const int stages : {1, 2, 3, 5}) {
    CAPTURE(stages);
    std::mt19937 random(static_cast<unsigned>(stages));
    Scheduler scheduler(pipeline_limits(stages, 5));
    Events events;
    StepsUnderWay under_way(scheduler, events);
    std::set<uint64_t> cancelled;
    constexpr uint64_t kRequests = 60;
    uint64_t next_id = 0;
    const auto have_all_ended = [&] {
      return events.ends.size() + cancelled.size() == kRequests && scheduler.steps_in_flight() == 0;
    };
    for (int round = 0; round < 20'000 && !have_all_ended(); ++round) {
      const unsigned what = random() % 8;
      if (what == 0 && next_id < kRequests) {
        REQUIRE(scheduler
                    .submit(next_id++, {.prompt = prompt_of(1 + static_cast<int>(random() % 400)),
                                        .max_tokens = 1 + static_cast<int>(random() % 30)})
                    .ok());
      } else if (what == 1 && next_id > 0 && random() % 4 == 0) {
        const uint64_t id = random() % next_id;
        if (scheduler.cancel(id)) CHECK(cancelled.insert(id).second);
      } else if (what < 5) {
        if (scheduler.steps_in_flight() < steps_in_flight_max(stages)) under_way.plan();
      } else if (scheduler.steps_in_flight() > 0) {
        under_way.complete(7);
      }
      // A page belongs to one sequence: in all steps in flight it has one position in one list.
      std::map<int32_t, int32_t> first_position;
      for (const Step& step : under_way.steps()) {
        const Batch& batch = step.batch;
        for (size_t i = 0; i < batch.tokens.size(); ++i) {
          const int32_t index = batch.positions[i] / 64;
          const int32_t page = batch.page_lists[static_cast<size_t>(batch.list_offsets[i] + index)];
          const auto [found, is_new] = first_position.emplace(page, index);
          REQUIRE(found->second == index);
        }
      }
    }
    CHECK(next_id == kRequests);
    CHECK(is_idle(scheduler));
    for (const uint64_t id : cancelled) CHECK(events.ends.count(id) == 0);
    CHECK(events.ends.size() + cancelled.size() == kRequests);
    CHECK(cancelled.size() > 3);
  }
}

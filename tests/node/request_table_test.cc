// A request's events across the loss of its group, driven by hand.
#include "node/requests/request_table.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace lockstep;

namespace {

using Time = RequestTable::Time;
const Error kRankLost{ErrorCode::kPeerLost, "rank 1 was lost"};

struct Told {
  std::vector<int> starts;
  std::vector<int32_t> tokens;
  std::vector<std::pair<size_t, float>> logprobs;  // tokens sent before, and the first logprob
  int rows = 0;
  std::vector<int> progress;
  std::vector<std::string> pauses;
  std::vector<int> resumed;  // tokens computed a second time
  std::vector<Result<FinishReason>> ends;

  EventSink events() {
    return [this](RequestEvent event) {
      if (const auto* started = event.as<RequestEvent::Started>()) {
        starts.push_back(started->cached_tokens);
      } else if (const auto* token = event.as<RequestEvent::Token>()) {
        tokens.push_back(token->token);
      } else if (const auto* of = event.as<RequestEvent::Logprobs>()) {
        logprobs.emplace_back(tokens.size(), of->logprobs[0].logprob);
      } else if (event.as<RequestEvent::Row>()) {
        ++rows;
      } else if (const auto* done = event.as<RequestEvent::Progress>()) {
        progress.push_back(done->done);
      } else if (const auto* paused = event.as<RequestEvent::Paused>()) {
        pauses.push_back(paused->reason);
      } else if (const auto* goes_on = event.as<RequestEvent::Resumed>()) {
        resumed.push_back(goes_on->recomputed_tokens);
      } else if (auto* ended = event.as<RequestEvent::Ended>()) {
        ends.push_back(std::move(ended->outcome));
      }
    };
  }
};

// Submits the held requests and returns them.
std::vector<GenerateRequest> submit(RequestTable& table) {
  std::vector<GenerateRequest> submitted;
  table.submit_held([&](uint64_t, const GenerateRequest& request) -> Status {
    submitted.push_back(request);
    return Ok{};
  });
  return submitted;
}

GenerateRequest request(std::vector<int32_t> prompt, int max_tokens) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

}  // namespace

TEST_CASE("the next group is fed the prompt and the tokens sent so far") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7, 8}, 5), told.events(), Time::max());
  REQUIRE(submit(table).size() == 1);
  table.take({1, RequestEvent::Token{9}});
  table.take({1, RequestEvent::Token{10}});
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  const auto again = submit(table);
  REQUIRE(again.size() == 1);
  CHECK(again[0].prompt == std::vector<int32_t>{7, 8, 9, 10});
  CHECK(again[0].max_tokens == 3);
  CHECK(told.ends.empty());
}

TEST_CASE("the first group's cached prompt tokens are reported, and no later one's") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7, 8}, 5), told.events(), Time::max());
  submit(table);
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  submit(table);
  table.take({1, RequestEvent::Started{64}});
  table.take({2, RequestEvent::Started{128}});
  table.take({1, RequestEvent::Token{9}});
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  submit(table);
  table.take({1, RequestEvent::Started{0}});
  CHECK(told.starts == std::vector<int>{64});
}

TEST_CASE("a loss in mid-answer is a pause, and the next start says how much was computed again") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7, 8, 9}, 5), told.events(), Time::max());
  submit(table);
  table.take({1, RequestEvent::Started{0}});
  for (const int32_t token : {10, 11, 12}) table.take({1, RequestEvent::Token{token}});
  table.hold_submitted({Time::max(), 5, 100}, kRankLost);
  CHECK(told.pauses == std::vector<std::string>{"rank 1 was lost"});
  submit(table);
  table.hold_submitted({Time::max(), 5, 100}, kRankLost);  // before it had computed anything
  CHECK(told.pauses.size() == 2);
  submit(table);
  table.take({1, RequestEvent::Progress{4, 2}});  // the client knows its prompt to be computed
  CHECK(told.resumed.empty());
  table.take({1, RequestEvent::Started{2}});
  // The state of 3 + 3 tokens but the last had been computed, and 2 were cached.
  CHECK(told.resumed == std::vector<int>{3});
  CHECK(told.progress.empty());
  CHECK(told.starts == std::vector<int>{0});
  table.take({1, RequestEvent::Token{13}});
  table.hold_submitted({Time::max(), 5, 100}, kRankLost);
  submit(table);
  table.take({1, RequestEvent::Started{6}});
  CHECK(told.resumed == std::vector<int>{3, 0});
}

TEST_CASE("a loss while the prompt is read is a pause, and the progress begins again") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7, 8, 9, 10}, 5), told.events(), Time::max());
  table.hold_submitted({Time::max(), 5, 100}, kRankLost);  // it was not submitted
  CHECK(told.pauses.empty());
  submit(table);
  table.take({1, RequestEvent::Progress{0, 0}});
  table.take({1, RequestEvent::Progress{3, 0}});
  table.hold_submitted({Time::max(), 5, 100}, kRankLost);
  submit(table);
  table.take({1, RequestEvent::Progress{1, 1}});
  table.take({1, RequestEvent::Started{1}});
  CHECK(told.progress == std::vector<int>{0, 3, 1});
  CHECK(told.resumed == std::vector<int>{2});
  CHECK(told.starts == std::vector<int>{1});
}

TEST_CASE("a request that fails with its group has no pause") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7}, 5), told.events(), Time::max());
  submit(table);
  table.hold_submitted({Time::max(), 0, 100}, kRankLost);
  CHECK(told.pauses.empty());
  CHECK(told.ends.size() == 1);
}

TEST_CASE("logprobs are sent with their token, and only once if it comes again") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7, 8}, 5), told.events(), Time::max());
  submit(table);
  const auto tell = [&](float logprob) {
    const std::vector<TokenLogprob> one{{9, logprob}};
    table.take({1, RequestEvent::Logprobs{one}});
  };
  tell(-1);
  CHECK(told.logprobs.empty());
  table.take({1, RequestEvent::Token{9}});
  table.take({1, RequestEvent::Token{10}});
  tell(-2);
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  submit(table);
  tell(-3);
  table.take({1, RequestEvent::Token{11}});
  tell(-4);
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  submit(table);
  table.take({1, RequestEvent::Token{12}});
  CHECK(told.logprobs == std::vector<std::pair<size_t, float>>{{0, -1.0f}, {2, -3.0f}});
}

TEST_CASE("rows of logits are not sent twice") {
  RequestTable table([] {});
  Told told;
  GenerateRequest rows = request({7, 8, 9}, 2);
  rows.prompt_logits = true;
  table.add(1, rows, told.events(), Time::max());
  submit(table);
  const std::vector<float> row{1};
  table.take({1, RequestEvent::Row{row}});
  table.take({1, RequestEvent::Row{row}});
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  CHECK(submit(table)[0].prompt_logits);
  for (int i = 0; i < 3; ++i) table.take({1, RequestEvent::Row{row}});
  CHECK(told.rows == 3);
  table.take({1, RequestEvent::Token{5}});
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  CHECK_FALSE(submit(table)[0].prompt_logits);
}

TEST_CASE("a request of which only the end was lost has ended") {
  RequestTable table([] {});
  Told by_length, by_context, running;
  table.add(1, request({7}, 1), by_length.events(), Time::max());
  table.add(2, request({7, 8, 9}, 100), by_context.events(), Time::max());
  table.add(3, request({7, 8}, 100), running.events(), Time::max());
  submit(table);
  for (uint64_t id : {1, 2, 3}) table.take({id, RequestEvent::Token{5}});
  table.hold_submitted({Time::max(), 1, 3}, kRankLost);
  REQUIRE(by_length.ends.size() == 1);
  CHECK(by_length.ends[0].value() == FinishReason::kLength);
  REQUIRE(by_context.ends.size() == 1);
  CHECK(by_context.ends[0].value() == FinishReason::kLength);
  CHECK(running.ends.empty());
}

TEST_CASE("losses without a token between them are counted, and a token resets the count") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7}, 100), told.events(), Time::max());
  for (int i = 0; i < 5; ++i) {
    submit(table);
    table.take({1, RequestEvent::Token{5}});
    table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  }
  CHECK(told.ends.empty());
  submit(table);
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  REQUIRE(told.ends.size() == 1);
  CHECK(told.ends[0].error().message == kRankLost.message);
}

TEST_CASE("a request that was cancelled is not resumed") {
  RequestTable table([] {});
  Told submitted, held;
  table.add(1, request({7}, 100), submitted.events(), Time::max());
  submit(table);
  table.add(2, request({7}, 100), held.events(), Time::max());
  CHECK(table.cancel(1));        // the group should end it, but is lost first
  CHECK_FALSE(table.cancel(2));  // no group needs to know
  CHECK_FALSE(table.cancel(3));
  CHECK(submitted.ends.empty());
  REQUIRE(held.ends.size() == 1);
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  REQUIRE(submitted.ends.size() == 1);
  CHECK(submitted.ends[0].error().code == ErrorCode::kCancelled);
  CHECK(submit(table).empty());
}

TEST_CASE("tokens of a lost group that arrive while its requests are held count") {
  RequestTable table([] {});
  Told rows, tokens, last;
  GenerateRequest wants_rows = request({7, 8, 9}, 2);
  wants_rows.prompt_logits = true;
  table.add(1, wants_rows, rows.events(), Time::max());
  table.add(2, request({7}, 2), tokens.events(), Time::max());
  table.add(3, request({7}, 1), last.events(), Time::max());
  submit(table);
  const std::vector<float> row{1};
  table.take({1, RequestEvent::Row{row}});
  table.hold_submitted({Time::max(), 1, 100}, kRankLost);
  table.take({1, RequestEvent::Row{row}});
  table.take({2, RequestEvent::Token{5}});
  table.take({3, RequestEvent::Token{5}});
  CHECK(rows.rows == 2);
  const auto again = submit(table);
  REQUIRE(again.size() == 2);
  CHECK(again[1].prompt == std::vector<int32_t>{7, 5});
  CHECK(again[1].max_tokens == 1);
  for (int i = 0; i < 3; ++i) table.take({1, RequestEvent::Row{row}});
  CHECK(rows.rows == 3);
  REQUIRE(last.ends.size() == 1);
  CHECK(last.ends[0].value() == FinishReason::kLength);
}

TEST_CASE("a single request is held, and retried when its time has come") {
  RequestTable table([] {});
  Told alone, other;
  table.add(1, request({7}, 5), alone.events(), Time::max());
  table.add(2, request({8}, 5), other.events(), Time::max());
  submit(table);
  table.take({1, RequestEvent::Token{9}});
  const Time later{std::chrono::seconds(100)};
  table.hold(1, {.deadline = Time::max(), .losses_max = 1, .context = 0, .retry_at = later},
             kRankLost);
  CHECK(table.next_retry() == later);
  std::vector<uint64_t> tried;
  const auto note = [&](uint64_t id, const GenerateRequest&) -> Status {
    tried.push_back(id);
    return Ok{};
  };
  table.submit_held(note, later - std::chrono::seconds(1));
  CHECK(tried.empty());
  table.submit_held(note, later);
  CHECK(tried == std::vector<uint64_t>{1});
  CHECK(table.next_retry() == Time::max());
  CHECK(alone.ends.empty());
  table.hold(1, {Time::max(), 1, 0}, kRankLost);
  REQUIRE(alone.ends.size() == 1);
  CHECK(alone.ends[0].error().message == kRankLost.message);
  table.hold(3, {Time::max(), 1, 0}, kRankLost);
  CHECK(other.ends.empty());
}

TEST_CASE("a request that is put back counts no loss") {
  RequestTable table([] {});
  Told waiting, cancelled;
  table.add(1, request({7}, 5), waiting.events(), Time::max());
  table.add(2, request({7}, 5), cancelled.events(), Time::max());
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(submit(table).empty());
    if (i == 0) CHECK(table.cancel(2));
    table.put_back(1, Time::min());
    table.put_back(2, Time::min());
  }
  CHECK(waiting.ends.empty());
  REQUIRE(cancelled.ends.size() == 1);
  CHECK(cancelled.ends[0].error().code == ErrorCode::kCancelled);
}

TEST_CASE("an unknown context length ends no request") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7}, 5), told.events(), Time::max());
  submit(table);
  table.take({1, RequestEvent::Token{9}});
  table.hold_submitted({Time::max(), 1, 0}, kRankLost);
  CHECK(told.ends.empty());
  submit(table);
  // The next group knows its own context length.
  table.end(1, Error{ErrorCode::kExhausted, "the context holds 1"});
  REQUIRE(told.ends.size() == 1);
  CHECK(told.ends[0].value() == FinishReason::kLength);
}

TEST_CASE("requests that were never submitted to a group can be failed separately") {
  RequestTable table([] {});
  Told begun, added;
  table.add(1, request({7}, 5), begun.events(), Time::max());
  submit(table);
  table.hold_submitted({Time::max(), 1, 0}, kRankLost);
  table.add(2, request({7}, 5), added.events(), Time::max());
  table.fail_new(kRankLost);
  CHECK(begun.ends.empty());
  CHECK(added.ends.size() == 1);
}

TEST_CASE("tokens beyond the requested number are not sent") {
  RequestTable table([] {});
  Told told;
  table.add(1, request({7}, 2), told.events(), Time::max());
  submit(table);
  for (int32_t token : {5, 6, 7}) table.take({1, RequestEvent::Token{token}});
  CHECK(told.tokens == std::vector<int32_t>{5, 6});
}

// stream_options.include_timings, include_progress and include_events.
#include <doctest/doctest.h>

#include <algorithm>

#include "server/served.h"
#include "support/text.h"

namespace lockstep {
namespace {

std::string extras_body(std::string_view options) {
  return R"({"prompt":"hello","max_tokens":9,"stream":true,"stream_options":{)" +
         std::string(options) + "}}";
}

// A request whose answer the test gives, and the events of its stream.
class Extras {
 public:
  explicit Extras(std::string_view options) : client_(served.port()) {
    client_.send(Served::post_text("/v1/completions", extras_body(options)));
    running = served.model->request(0);
  }
  // Ends the answer.
  std::vector<Json> events() {
    running.end(FinishReason::kStop);
    std::vector<Json> parsed;
    for (const std::string& one :
         stream_events(Served::parse(read_ + client_.read_to_end()).body)) {
      if (one != "[DONE]") parsed.push_back(parse_json(one).value());
    }
    return parsed;
  }
  // All bytes until then; events() gives them again.
  std::string read_until(std::string_view text) { return read_ += client_.read_until(text); }

  Served served;
  FakeModel::Running running;

 private:
  RawClient client_;
  std::string read_;
};

// As a group that is lost in the prompt and in the answer reports it.
void play_losses(const FakeModel::Running& running) {
  running.send(RequestEvent::Progress{2, 2});
  running.send(RequestEvent::Progress{4, 2});
  running.send(RequestEvent::Paused{"rank 1 on box was lost"});
  running.send(RequestEvent::Progress{3, 3});
  running.send(RequestEvent::Resumed{1});
  running.start(3);
  running.token('a');
  running.send(RequestEvent::Paused{"rank 0 was lost"});
  running.send(RequestEvent::Paused{"and again"});
  running.send(RequestEvent::Resumed{5});
  running.token('b');
}

size_t with_member(const std::vector<Json>& events, const char* name) {
  return static_cast<size_t>(std::count_if(
      events.begin(), events.end(), [&](const Json& one) { return find(one, name) != nullptr; }));
}

}  // namespace

TEST_CASE("a stream that asks for nothing is the same with and without losses") {
  std::string first;
  for (const bool has_losses : {false, true}) {
    Extras extras("");
    if (has_losses) {
      play_losses(extras.running);
    } else {
      extras.running.start(3);
      FakeModel::say(extras.running, "ab");
    }
    std::string text;
    for (const Json& event : extras.events()) {
      JsonObject object = event.get_object();
      for (const char* varies : {"id", "created"}) object.erase(varies);
      text += dump_json(object) + "\n";
    }
    if (first.empty()) first = text;
    CHECK(text == first);
    CHECK_FALSE(contains(text, "timings"));
    CHECK_FALSE(contains(text, "lockstep\":"));
  }
}

TEST_CASE("timings come with the last event, in llama.cpp's names") {
  Extras extras(R"("include_timings":true)");
  extras.running.send(RequestEvent::Progress{2, 2});
  extras.running.start(2);
  FakeModel::say(extras.running, "abc");
  const auto events = extras.events();
  const Json& last = events.back();
  CHECK(with_member(events, "timings") == 1);
  CHECK(at(last, "choices").get_array().empty());
  CHECK(find(last, "usage") == nullptr);
  CHECK(at(last, "timings", "cache_n") == 2);
  CHECK(at(last, "timings", "prompt_n") == 4);
  CHECK(at(last, "timings", "predicted_n") == 3);
  for (const char* name :
       {"prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second"}) {
    CHECK_MESSAGE(at(last, "timings", name).as_double() > 0, name);
  }
  CHECK(at(last, "lockstep", "first_token_ms").as_double() >=
        at(last, "timings", "prompt_ms").as_double());
  CHECK(at(last, "lockstep", "machines") == 1);
}

TEST_CASE("timings share the last event with the usage") {
  Extras extras(R"("include_timings":true,"include_usage":true)");
  extras.running.start(0);
  extras.running.token('a');
  const auto events = extras.events();
  CHECK(with_member(events, "timings") == 1);
  CHECK(at(events.back(), "usage", "completion_tokens") == 1);
  CHECK(at(events.back(), "timings", "predicted_n") == 1);
  CHECK(find(at(events.back(), "timings"), "predicted_per_second") == nullptr);
  CHECK(at(events.front(), "usage").is_null());
}

TEST_CASE("the progress of a prompt comes as events before the answer") {
  Extras extras(R"("include_progress":true)");
  play_losses(extras.running);
  const auto events = extras.events();
  REQUIRE(with_member(events, "prompt_progress") == 3);
  const std::vector<std::pair<int, int>> expected{{2, 2}, {4, 2}, {3, 3}};  // processed, cache
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(at(events[i], "choices").get_array().empty());
    CHECK(at(events[i], "prompt_progress", "total") == 6);
    CHECK(at(events[i], "prompt_progress", "processed") == expected[i].first);
    CHECK(at(events[i], "prompt_progress", "cache") == expected[i].second);
    CHECK(at(events[i], "prompt_progress", "time_ms").as_double() >= 0);
  }
  CHECK(at(events[3], "choices", 0, "text") == "a");
  CHECK(with_member(events, "lockstep") == 0);
}

TEST_CASE("a loss and its end are events where they happened") {
  Extras extras(R"("include_events":true)");
  play_losses(extras.running);
  const auto events = extras.events();
  REQUIRE(with_member(events, "lockstep") == 4);
  CHECK(at(events[0], "lockstep", "event", "kind") == "pause");
  CHECK(at(events[0], "lockstep", "event", "reason") == "rank 1 on box was lost");
  CHECK(at(events[1], "lockstep", "event", "kind") == "resume");
  CHECK(at(events[1], "lockstep", "event", "after_s").as_double() >= 0);
  CHECK(at(events[1], "lockstep", "event", "recomputed_tokens") == 1);
  CHECK(at(events[2], "choices", 0, "text") == "a");
  CHECK(at(events[3], "lockstep", "event", "reason") == "rank 0 was lost");
  CHECK(at(events[4], "lockstep", "event", "recomputed_tokens") == 5);
  CHECK(at(events[5], "choices", 0, "text") == "b");
}

TEST_CASE("an answer that goes on with other machines says so") {
  Extras extras(R"("include_events":true,"include_timings":true)");
  extras.running.start(0);
  extras.running.token('a');
  extras.running.send(RequestEvent::Paused{"box was lost"});
  extras.served.model->set_nodes({"", "desk"});
  extras.running.send(RequestEvent::Resumed{2});
  REQUIRE(contains(extras.read_until("\"node\""), "resume"));
  extras.running.token('c');
  const auto events = extras.events();
  std::string reason;
  for (const Json& event : events) {
    const Json* own = find(event, "lockstep");
    const Json* what = own == nullptr ? nullptr : find(*own, "event");
    if (what != nullptr && at(*what, "kind") == "node") reason = text_at(at(*what, "reason"));
  }
  CHECK(reason == "the answer goes on with the leading node, desk");
  CHECK(at(events.back(), "lockstep", "machines") == 2);
}

TEST_CASE("what a stream is to tell must be true or false") {
  Served served;
  for (const char* name : {"include_timings", "include_progress", "include_events"}) {
    const Answer refused =
        served.post("/v1/completions", extras_body('"' + std::string(name) + "\":1"));
    CHECK(refused.status == 400);
    CHECK(contains(message_of(refused), name));
  }
  CHECK(served.model->request_count() == 0);
}

}  // namespace lockstep

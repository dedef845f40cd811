#include "server/openai/openai_completions.h"

#include <doctest/doctest.h>

#include "server/served.h"

namespace lockstep {

TEST_CASE("a completion has OpenAI's shape, field by field") {
  Served server;
  server.model->says(" was a byte.");
  const Answer answer = server.post(
      "/v1/completions", R"({"model":"org/Tiny-Model","prompt":"There","max_tokens":6,"seed":7,)"
                         R"("temperature":0.5,"top_p":0.9,"top_k":40,"user":"u","best_of":1})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("Content-Type: application/json\r\n"));
  CHECK(!answer.has_header("x-lockstep-ignored-fields"));
  const Json json = answer.json();
  CHECK(text_at(at(json, "id")).substr(0, 5) == "cmpl-");
  CHECK(at(json, "object") == "text_completion");
  CHECK(at(json, "created").is_int64());
  CHECK(at(json, "model") == "org/Tiny-Model");
  CHECK(at(json, "system_fingerprint") == "lockstep-0.1.0");
  CHECK(at(json, "choices").get_array().size() == 1);
  CHECK(at(json, "choices", 0, "text") == " was a");
  CHECK(at(json, "choices", 0, "index") == 0);
  CHECK(at(json, "choices", 0, "logprobs").is_null());
  CHECK(at(json, "choices", 0, "finish_reason") == "length");
  CHECK(at(json, "usage", "prompt_tokens") == 6);
  CHECK(at(json, "usage", "completion_tokens") == 6);
  CHECK(at(json, "usage", "total_tokens") == 12);
  CHECK(at(json, "usage", "prompt_tokens_details", "cached_tokens") == 0);
  const GenerateRequest request = server.model->request(0).request;
  CHECK(request.prompt == std::vector<int32_t>{256, 'T', 'h', 'e', 'r', 'e'});
  CHECK(request.max_tokens == 6);
  CHECK(request.stop_ids == std::vector<int32_t>{257});
  CHECK(request.sampling.seed == 7);
  CHECK(request.sampling.temperature == 0.5f);
  CHECK(request.sampling.top_p == 0.9f);
  CHECK(request.sampling.top_k == 40);
}

TEST_CASE("defaults are OpenAI's: 16 tokens, temperature 1, a random seed, the only model") {
  Served server;
  server.model->says("x");
  CHECK(server.post("/completions/", R"({"prompt":"a"})").status == 200);
  CHECK(server.post("/completions", R"({"prompt":"a","temperature":null})").status == 200);
  const GenerateRequest first = server.model->request(0).request;
  CHECK(first.max_tokens == 16);
  CHECK(first.sampling.temperature == 1.0f);
  CHECK(first.sampling.seed != server.model->request(1).request.sampling.seed);
}

TEST_CASE("a streamed completion consists of pieces of text, a finish reason and DONE") {
  Served server;
  server.model->says("abc");
  const Answer answer = server.post(
      "/v1/completions",
      R"({"prompt":"p","stream":true,"stream_options":{"include_usage":true},"zoo":1,"a\r\nb":2})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("Content-Type: text/event-stream"));
  CHECK(answer.has_header("x-lockstep-ignored-fields: zoo\r\n"));
  const std::vector<std::string> events = stream_events(answer.body);
  REQUIRE(events.size() == 6);
  std::string text;
  for (size_t i = 0; i < 5; ++i) {
    const Json chunk = parse_json(events[i]).value();
    CHECK(at(chunk, "object") == "text_completion");
    CHECK(at(chunk, "id") == at(parse_json(events[0]).value(), "id"));
    if (i < 4) CHECK(at(chunk, "usage").is_null());
    if (i < 3) CHECK(at(chunk, "choices", 0, "finish_reason").is_null());
    if (i < 3) text += text_at(at(chunk, "choices", 0, "text"));
  }
  CHECK(text == "abc");
  CHECK(at(parse_json(events[3]).value(), "choices", 0, "finish_reason") == "stop");
  CHECK(at(parse_json(events[4]).value(), "choices").get_array().empty());
  CHECK(at(parse_json(events[4]).value(), "usage", "completion_tokens") == 3);
  CHECK(events[5] == "[DONE]");
}

TEST_CASE("several prompts and n give choices in order, with seeds that count up for each prompt") {
  Served server;
  server.model->says("y");
  const Json json =
      server.post("/v1/completions", R"({"prompt":["a","bc"],"n":2,"seed":-1,"echo":true})").json();
  REQUIRE(at(json, "choices").get_array().size() == 4);
  CHECK(at(json, "choices", 0, "text") == "ay");
  CHECK(at(json, "choices", 1, "text") == "ay");
  CHECK(at(json, "choices", 3, "text") == "bcy");
  CHECK(at(json, "choices", 3, "index") == 3);
  CHECK(at(json, "usage", "prompt_tokens") == 5);
  CHECK(at(json, "usage", "completion_tokens") == 4);
  CHECK(server.model->request(0).request.sampling.seed == ~uint64_t{0});
  CHECK(server.model->request(1).request.sampling.seed == 0);
  CHECK(server.model->request(2).request.sampling.seed == ~uint64_t{0});
}

TEST_CASE("a prompt's cached tokens count once, however many choices it has") {
  Served server;
  server.model->says("y");
  server.model->has_cached(3);
  const Json json =
      server.post("/v1/completions", R"({"prompt":["abcdefg","hijklmn"],"n":2})").json();
  CHECK(at(json, "usage", "prompt_tokens") == 16);
  CHECK(at(json, "usage", "prompt_tokens_details", "cached_tokens") == 3 + 5);
  CHECK(server.get("/metrics")
            .body.find("lockstep_cached_prompt_tokens_total{model=\"org/Tiny-Model\"} 8\n") !=
        std::string::npos);
}

TEST_CASE("prompts of token ids are passed to the model unchanged") {
  Served server;
  server.model->says("z");
  const Json one = server.post("/v1/completions", R"({"prompt":[104,105],"echo":true})").json();
  CHECK(at(one, "choices", 0, "text") == "hiz");
  CHECK(server.model->request(0).request.prompt == std::vector<int32_t>{104, 105});
  const Json two = server.post("/v1/completions", R"({"prompt":[[104],[105,33]]})").json();
  CHECK(at(two, "choices").get_array().size() == 2);
  CHECK(server.model->request(2).request.prompt == std::vector<int32_t>{105, 33});
  const Json bad = server.post("/v1/completions", R"({"prompt":[104,258]})").json();
  CHECK(at(bad, "error", "param") == "prompt");
}

TEST_CASE("a stop string ends the text before it, across tokens, and cancels the rest") {
  Served server;
  for (const bool is_streamed : {false, true}) {
    RawClient client(server.port());
    client.send(Served::post_text(
        "/v1/completions", std::string(R"({"prompt":"p","max_tokens":50,"stop":["END","\n\n"],)") +
                               (is_streamed ? R"("stream":true})" : R"("stream":false})")));
    const FakeModel::Running running = server.model->request(is_streamed ? 1 : 0);
    FakeModel::say(running, "one EN two\n END three");
    CHECK(server.model->waits_for_cancel(running.id));
    running.end(Error{ErrorCode::kCancelled, "cancelled"});
    const Answer answer = Served::parse(client.read_to_end());
    CHECK(answer.status == 200);
    std::string text;
    if (is_streamed) {
      const auto events = stream_events(answer.body);
      CHECK(events.back() == "[DONE]");
      for (size_t i = 0; i + 1 < events.size(); ++i) {
        text += text_at(at(parse_json(events[i]).value(), "choices", 0, "text"));
      }
    } else {
      text = text_at(at(answer.json(), "choices", 0, "text"));
      CHECK(at(answer.json(), "choices", 0, "finish_reason") == "stop");
      CHECK(at(answer.json(), "usage", "completion_tokens") == 15);
    }
    CHECK(text == "one EN two\n ");
  }
}

TEST_CASE("a partial stop string is sent at the end, and partial characters never are") {
  Served server;
  server.model->says("\xC3\xA9\xE2\x82\xAC EN\xF0\x9F");
  const Answer answer =
      server.post("/v1/completions", R"({"prompt":"p","stop":"END","stream":true})");
  std::string text;
  for (const std::string& event : stream_events(answer.body)) {
    if (event == "[DONE]") continue;
    auto chunk = parse_json(event);
    REQUIRE(chunk.ok());  // invalid UTF-8 would not be valid JSON
    text += text_at(at(chunk.value(), "choices", 0, "text"));
  }
  CHECK(text == "\xC3\xA9\xE2\x82\xAC EN\xEF\xBF\xBD");
}

TEST_CASE("a client that disconnects cancels all its generations") {
  Served server;
  for (const bool is_streamed : {false, true}) {
    const size_t base = is_streamed ? 2 : 0;
    RawClient client(server.port());
    client.send(Served::post_text("/v1/completions",
                                  is_streamed ? R"({"prompt":["a","b"],"stream":true})"
                                              : R"({"prompt":["a","b"],"stream":false})"));
    const auto first = server.model->request(base);
    const auto second = server.model->request(base + 1);
    FakeModel::say(first, "some");
    if (is_streamed) client.read_until("data: ");
    client.close();
    CHECK(server.model->waits_for_cancel(first.id));
    CHECK(server.model->waits_for_cancel(second.id));
    FakeModel::say(first, "late");
    first.end(Error{ErrorCode::kCancelled, "cancelled"});
    second.end(Error{ErrorCode::kCancelled, "cancelled"});
  }
}

TEST_CASE("a running request does not keep its model loaded") {
  std::weak_ptr<FakeModel> model;
  {
    Served server;
    model = server.model;
    RawClient client(server.port());
    client.send(Served::post_text("/v1/completions", R"({"prompt":"p","stream":true})"));
    CHECK(server.model->request(0).id == 100);
  }
  CHECK(model.expired());
}

TEST_CASE("a failure in the middle of a stream is an error event, and no DONE") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/completions", R"({"prompt":"p","n":2,"stream":true})"));
  const auto first = server.model->request(0);
  const auto second = server.model->request(1);
  FakeModel::say(first, "some");
  first.end(Error{ErrorCode::kPeerLost, "rank 1 (pid 42) was killed by signal 9"});
  const Answer answer = Served::parse(client.read_to_end());
  CHECK(answer.status == 200);
  const auto events = stream_events(answer.body);
  const Json error = parse_json(events.back()).value();
  CHECK(at(error, "error", "message") == "rank 1 (pid 42) was killed by signal 9");
  CHECK(at(error, "error", "type") == "server_error");
  CHECK(at(error, "error", "code") == "model_not_ready");
  CHECK(server.model->waits_for_cancel(second.id));
  second.end(Error{ErrorCode::kCancelled, "cancelled"});
}

TEST_CASE("a failure before the first token has its own status, streamed or not") {
  Served server;
  size_t index = 0;
  for (const char* body : {R"({"prompt":"p","stream":true})", R"({"prompt":"p"})"}) {
    RawClient lost(server.port());
    lost.send(Served::post_text("/v1/completions", body));
    server.model->request(index++).end(Error{ErrorCode::kPeerLost, "rank 1 is gone"});
    const Answer answer = Served::parse(lost.read_to_end());
    CHECK(answer.status == 503);
    CHECK(at(answer.json(), "error", "message") == "rank 1 is gone");
    RawClient full(server.port());
    full.send(Served::post_text("/v1/completions", body));
    server.model->request(index++).end(Error{ErrorCode::kExhausted, "does not fit"});
    const Answer busy = Served::parse(full.read_to_end());
    CHECK(busy.status == 429);
    CHECK(busy.has_header("Retry-After: 1\r\n"));
    CHECK(at(busy.json(), "error", "code") == "queue_full");
  }
}

TEST_CASE("a prompt that turns out to be too long for the model is an error without retry") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/completions", R"({"prompt":"some words"})"));
  const auto running = server.model->request(0);
  REQUIRE(running.request.prompt.size() > 1);
  server.model->set_context(1);  // of the group that got it
  running.end(Error{ErrorCode::kExhausted, "does not fit"});
  const Answer answer = Served::parse(client.read_to_end());
  CHECK(answer.status == 400);
  CHECK(at(answer.json(), "error", "code") == "context_length_exceeded");
}

TEST_CASE("a long silence of a stream is broken by an empty delta") {
  Served server(std::chrono::milliseconds(20));
  RawClient client(server.port());
  client.send(Served::post_text("/v1/completions", R"({"prompt":"p","stream":true})"));
  const auto running = server.model->request(0);
  CHECK(client.read_until("\r\n\r\n").find("200 OK") != std::string::npos);
  CHECK(client.read_until("\n\n").find(R"("text":"")") != std::string::npos);
  CHECK(client.read_until("\n\n").find(R"("text":"")") != std::string::npos);
  running.end(Error{ErrorCode::kPeerLost, "gone"});
  const std::string rest = client.read_to_end();
  CHECK(rest.find("data: {\"error\":") != std::string::npos);
}

TEST_CASE("a full queue is 429 with Retry-After, a model that is not ready is 503") {
  Served server;
  server.model->refuses({ErrorCode::kExhausted, "64 requests are waiting, the most there may be"});
  const Answer full = server.post("/v1/completions", R"({"prompt":"p"})");
  CHECK(full.status == 429);
  CHECK(full.has_header("Retry-After: 1\r\n"));
  CHECK(at(full.json(), "error", "type") == "rate_limit_error");
  server.model->refuses({ErrorCode::kPeerLost, "no group is ready"});
  CHECK(server.post("/v1/completions", R"({"prompt":"p"})").status == 503);
  server.model->set_state(ModelStatus::State::kFailed, "rank 1 died");
  const Answer failed = server.post("/v1/completions", R"({"prompt":"p"})");
  CHECK(failed.status == 503);
  CHECK(at(failed.json(), "error", "message") ==
        "the model \"org/Tiny-Model\" is failed: rank 1 died");
}

TEST_CASE("a prompt that fills the context is refused for its length") {
  Served server;
  server.model->says("x");
  const auto body = [](size_t size) { return R"({"prompt":")" + std::string(size, 'a') + "\"}"; };
  CHECK(server.post("/v1/completions", body(998)).status == 200);  // room for the first token
  const Answer answer = server.post("/v1/completions", body(999));
  CHECK(answer.status == 400);
  CHECK(at(answer.json(), "error", "code") == "context_length_exceeded");
  CHECK(at(answer.json(), "error", "param") == "prompt");
}

}  // namespace lockstep

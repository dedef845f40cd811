// A request's sampling options reach the model, and log-probabilities reach the client.
#include <doctest/doctest.h>

#include <cmath>

#include "server/generation/token_logprobs.h"
#include "server/served.h"

namespace lockstep {
namespace {

// A token of a FakeModel with its logprob, and 'z' as a likely alternative.
void say_with_logprobs(const FakeModel::Running& running, std::string_view text) {
  for (const char c : text) {
    const int32_t token = static_cast<uint8_t>(c);
    std::vector<TokenLogprob> logprobs{{token, -0.5f * static_cast<float>(token % 7)}};
    for (int i = 0; i < running.request.top_logprobs; ++i) {
      logprobs.push_back({i == 0 ? token : 'z', -0.25f});
    }
    running.logprobs(logprobs);
    running.token(token);
  }
}

// The tokens of all "logprobs" of a chat stream.
std::string streamed_tokens(const std::string& body, std::string* content) {
  std::string tokens;
  for (const std::string& event : stream_events(body)) {
    if (event == "[DONE]") break;
    const Json chunk = parse_json(event).value();
    const Json delta = at(chunk, "choices", 0, "delta");
    if (const Json* text = find(delta, "content")) *content += text_at(*text);
    const Json logprobs = at(chunk, "choices", 0, "logprobs");
    if (logprobs.is_null()) continue;
    const Json entries = at(logprobs, "content");
    for (const Json& one : entries.get_array()) tokens += text_at(at(one, "token"));
  }
  return tokens;
}

}  // namespace

TEST_CASE("every sampling option reaches the model") {
  for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
    CAPTURE(path);
    Served server;
    server.model->says("x");
    const Answer answer = server.post(
        path, std::string(R"({"prompt":"a","messages":[{"role":"user","content":"a"}],)") +
                  R"("temperature":0.5,"min_p":0.05,"typical_p":0.9,"repetition_penalty":1.2,)"
                  R"("repeat_last_n":64,"presence_penalty":0.5,"frequency_penalty":-0.25,)"
                  R"("dry_multiplier":0.8,"dry_base":1.5,"dry_allowed_length":3,)"
                  R"("dry_penalty_last_n":256,"dry_sequence_breakers":["xy",":"],)"
                  R"("logit_bias":{"7":-100,"9":2.5},"min_tokens":4,"seed":3})");
    CHECK(answer.status == 200);
    const GenerateRequest request = server.model->request(0).request;
    CHECK(request.sampling.temperature == 0.5f);
    CHECK(request.sampling.seed == 3);
    CHECK(request.sampling.min_p == 0.05f);
    CHECK(request.sampling.typical_p == 0.9f);
    CHECK(request.sampling.repetition_penalty == 1.2f);
    CHECK(request.sampling.penalty_tokens == 64);
    CHECK(request.sampling.presence_penalty == 0.5f);
    CHECK(request.sampling.frequency_penalty == -0.25f);
    CHECK(request.sampling.dry_multiplier == 0.8f);
    CHECK(request.sampling.dry_base == 1.5f);
    CHECK(request.sampling.dry_allowed_length == 3);
    CHECK(request.sampling.dry_tokens == 256);
    CHECK(request.dry_breakers == std::vector<int32_t>{'y', ':'});
    REQUIRE(request.logit_bias.size() == 2);
    CHECK(request.logit_bias[0].token == 7);
    CHECK(request.logit_bias[0].bias == -100);
    CHECK(request.logit_bias[1].bias == 2.5f);
    CHECK(request.min_tokens == 4);
    CHECK(request.stop_ids == std::vector<int32_t>{257});
    CHECK(request.top_logprobs == -1);
  }
}

TEST_CASE("by default nothing is penalised, and ignore_eos leaves no end token") {
  Served server;
  server.model->says("x");
  server.post("/v1/completions", R"({"prompt":"a","ignore_eos":true,"repeat_penalty":1.1})");
  server.post("/v1/completions", R"({"prompt":"a","dry_multiplier":1})");
  const GenerateRequest request = server.model->request(0).request;
  CHECK(request.stop_ids.empty());
  CHECK(request.sampling.repetition_penalty == 1.1f);
  CHECK(request.sampling.penalty_tokens == -1);
  CHECK(request.sampling.dry_multiplier == 0);
  CHECK(request.dry_breakers.empty());
  CHECK(request.logit_bias.empty());
  CHECK(server.model->request(1).request.dry_breakers == std::vector<int32_t>{'\n', ':', '"', '*'});
}

TEST_CASE("the number of guessed tokens is the one set for the server") {
  Served plain;
  Served guessing([](ServerOptions& options) { options.draft_tokens = 8; });
  for (Served* server : {&plain, &guessing}) {
    server->model->says("x");
    CHECK(server->post("/v1/completions", R"({"prompt":"a"})").status == 200);
  }
  CHECK(plain.model->request(0).request.draft_tokens == 0);
  CHECK(guessing.model->request(0).request.draft_tokens == 8);
}

TEST_CASE("a chat answer has the logprob of each token and of the likeliest ones") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/chat/completions",
                                R"({"messages":[{"role":"user","content":"x"}],)"
                                R"("logprobs":true,"top_logprobs":2})"));
  const auto running = server.model->request(0);
  CHECK(running.request.top_logprobs == 2);
  say_with_logprobs(running, "a\xC3\xA4");
  running.end(FinishReason::kStop);
  const Json json = Served::parse(client.read_to_end()).json();
  const Json logprobs = at(json, "choices", 0, "logprobs");
  CHECK(at(logprobs, "refusal").is_null());
  REQUIRE(at(logprobs, "content").get_array().size() == 3);
  CHECK(at(logprobs, "content", 0, "token") == "a");
  CHECK(at(logprobs, "content", 0, "logprob") == -0.5 * ('a' % 7));
  CHECK(dump_json(at(logprobs, "content", 0, "bytes")) == "[97]");
  CHECK(at(logprobs, "content", 0, "top_logprobs").get_array().size() == 2);
  CHECK(at(logprobs, "content", 0, "top_logprobs", 1, "token") == "z");
  CHECK(at(logprobs, "content", 0, "top_logprobs", 1, "logprob") == -0.25);
  // A partial character is sent with its bytes.
  CHECK(at(logprobs, "content", 1, "token") == "\xEF\xBF\xBD");
  CHECK(dump_json(at(logprobs, "content", 1, "bytes")) == "[195]");
}

TEST_CASE("streamed logprobs come with the text of their tokens, and each comes once") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/chat/completions",
                                R"({"messages":[{"role":"user","content":"x"}],"stream":true,)"
                                R"("logprobs":true,"stop":"STOP"})"));
  const auto running = server.model->request(0);
  CHECK(running.request.top_logprobs == 0);
  say_with_logprobs(running, "some S text STO");
  running.end(FinishReason::kLength);
  const Answer answer = Served::parse(client.read_to_end());
  std::string content;
  CHECK(streamed_tokens(answer.body, &content) == "some S text STO");
  CHECK(content == "some S text STO");
}

TEST_CASE("tokens of a stop string are hidden like their text") {
  Served server;
  RawClient client(server.port());
  client.send(Served::post_text("/v1/chat/completions",
                                R"({"messages":[{"role":"user","content":"x"}],"stream":true,)"
                                R"("logprobs":true,"stop":"STOP"})"));
  const auto running = server.model->request(0);
  say_with_logprobs(running, "text STOP here");
  const Answer answer = Served::parse(client.read_to_end());
  std::string content;
  CHECK(streamed_tokens(answer.body, &content) == "text ");
  CHECK(content == "text ");
}

TEST_CASE("completions have logprobs as lists, with the offset of each token") {
  for (const bool is_streamed : {false, true}) {
    Served server;
    RawClient client(server.port());
    client.send(Served::post_text("/v1/completions",
                                  std::string(R"({"prompt":"x","logprobs":2,"stream":)") +
                                      (is_streamed ? "true}" : "false}")));
    const auto running = server.model->request(0);
    CHECK(running.request.top_logprobs == 2);
    say_with_logprobs(running,
                      "\xC3\xA4"
                      "b");
    running.end(FinishReason::kLength);
    const Answer answer = Served::parse(client.read_to_end());
    if (is_streamed) {
      const auto events = stream_events(answer.body);
      REQUIRE(events.size() == 4);
      const Json last = parse_json(events[1]).value();
      CHECK(dump_json(at(last, "choices", 0, "logprobs", "tokens")) == R"(["b"])");
      CHECK(dump_json(at(last, "choices", 0, "logprobs", "text_offset")) == "[1]");
      CHECK(at(parse_json(events[2]).value(), "choices", 0, "logprobs").is_null());
      continue;
    }
    const Json logprobs = at(answer.json(), "choices", 0, "logprobs");
    CHECK(at(logprobs, "tokens").get_array().size() == 3);
    CHECK(at(logprobs, "token_logprobs", 2) == 0.0);
    CHECK(dump_json(at(logprobs, "text_offset")) == "[0,0,1]");
    CHECK(at(logprobs, "top_logprobs", 2, "z") == -0.25);
    CHECK(at(logprobs, "top_logprobs", 2, "b") == -0.25);
  }
}

}  // namespace lockstep

#include "server/openai/openai_chat.h"

#include <doctest/doctest.h>

#include "server/served.h"

namespace lockstep {

TEST_CASE("a chat answer has OpenAI's shape, field by field") {
  Served server;
  server.model->says(" Hi!");
  const Answer answer = server.post(
      "/v1/chat/completions",
      R"({"model":"tiny-model","messages":[{"role":"system","content":"Be brief."},)"
      R"({"role":"user","content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]},)"
      R"({"role":"assistant","content":null,"tool_calls":[]}],"tools":[],"tool_choice":"auto",)"
      R"("response_format":{"type":"text"},"presence_penalty":0.0,"store":false})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("x-lockstep-ignored-fields: store\r\n"));
  const Json json = answer.json();
  CHECK(text_at(at(json, "id")).substr(0, 9) == "chatcmpl-");
  CHECK(at(json, "object") == "chat.completion");
  CHECK(at(json, "model") == "org/Tiny-Model");
  CHECK(at(json, "choices", 0, "index") == 0);
  CHECK(at(json, "choices", 0, "message", "role") == "assistant");
  CHECK(at(json, "choices", 0, "message", "content") == "Hi!");
  CHECK(at(json, "choices", 0, "logprobs").is_null());
  CHECK(at(json, "choices", 0, "finish_reason") == "stop");
  CHECK(at(json, "usage", "completion_tokens") == 4);
  const GenerateRequest request = server.model->request(0).request;
  const std::string prompt = "Be brief.\nHello\n";
  CHECK(request.prompt == ByteTokenizer().encode(prompt, {.add_bos = true}));
  CHECK(request.max_tokens == 1000 - static_cast<int>(prompt.size()) - 1);
}

TEST_CASE("a streamed chat answer is role, content, finish reason, usage and DONE") {
  Served server;
  server.model->says("Hey");
  const Answer answer = server.post(
      "/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true,)"
                           R"("stream_options":{"include_usage":true},"max_completion_tokens":2})");
  const auto events = stream_events(answer.body);
  REQUIRE(events.size() == 6);
  std::vector<Json> chunks;
  for (size_t i = 0; i < 5; ++i) {
    chunks.push_back(parse_json(events[i]).value());
    CHECK(at(chunks[i], "object") == "chat.completion.chunk");
    CHECK(at(chunks[i], "system_fingerprint") == "lockstep-0.1.0");
  }
  CHECK(dump_json(at(chunks[0], "choices")) ==
        R"([{"index":0,"delta":{"role":"assistant","content":""},)"
        R"("logprobs":null,"finish_reason":null}])");
  CHECK(dump_json(at(chunks[1], "choices")) ==
        R"([{"index":0,"delta":{"content":"H"},"logprobs":null,"finish_reason":null}])");
  CHECK(dump_json(at(chunks[2], "choices", 0, "delta")) == R"({"content":"e"})");
  CHECK(dump_json(at(chunks[3], "choices")) ==
        R"([{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}])");
  CHECK(at(chunks[4], "choices").get_array().empty());
  CHECK(at(chunks[4], "usage", "prompt_tokens") == 2);
  CHECK(at(chunks[4], "usage", "total_tokens") == 4);
  CHECK(events[5] == "[DONE]");
}

TEST_CASE("a chat stream without include_usage has no usage") {
  Served server;
  server.model->says("Hey");
  const Answer answer = server.post(
      "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"stream":true})");
  CHECK(answer.body.find("usage") == std::string::npos);
}

TEST_CASE("n answers of a chat stream are told apart by their index") {
  Served server;
  server.model->says("ab");
  const Answer answer =
      server.post("/v1/chat/completions",
                  R"({"messages":[{"role":"user","content":"x"}],"stream":true,"n":3,"seed":5})");
  std::vector<std::string> texts(3);
  std::vector<int> ends(3);
  for (const std::string& event : stream_events(answer.body)) {
    if (event == "[DONE]") continue;
    const Json choice = at(parse_json(event).value(), "choices", 0);
    const size_t index = static_cast<size_t>(at(choice, "index").to_number<int64_t>());
    const Json delta = at(choice, "delta");
    if (const Json* content = find(delta, "content")) texts[index] += text_at(*content);
    ends[index] += at(choice, "finish_reason").is_string();
  }
  CHECK(texts == std::vector<std::string>(3, "ab"));
  CHECK(ends == std::vector<int>(3, 1));
  CHECK(server.model->request(2).request.sampling.seed == 7);
}

}  // namespace lockstep

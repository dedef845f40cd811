// Anthropic's Messages API: from a client's request to the model's prompt, and from the model's
// output to the client's events.
#include <regex>

#include "server/anthropic/anthropic_request.h"
#include "server/refusal.h"
#include "server/served_template.h"

namespace lockstep {
namespace {

const char* const kClaudeTools =
    R"("tools":[{"name":"weather","description":"Of a city.","cache_control":{"type":"ephemeral"},)"
    R"("input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}])";

std::string request(const std::string& fields, const std::string& messages = "") {
  return R"({"model":"tiny-model","max_tokens":100,"messages":[)" +
         (messages.empty() ? R"({"role":"user","content":"Rain?"})" : messages) + "]" +
         (fields.empty() ? "" : "," + fields) + "}";
}

std::string messages_verdict(const std::string& body,
                             MessagesRoute route = MessagesRoute::kMessages) {
  return refusal_of(parse_messages_request(body, route));
}

// The messages that the template sees for these.
std::string shown_messages(ServedTemplate& model, const std::string& messages,
                           const std::string& fields = "") {
  model.server.model->says("ok");
  const Answer answer = model.server.post("/v1/messages", request(fields, messages));
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return model.last_prompt();
}

}  // namespace

TEST_CASE("a message has exactly Anthropic's shape") {
  ServedTemplate model(kPlainTemplate);
  model.server.model->says("Hi");
  const Answer answer = model.server.post(
      "/v1/messages?beta=true",
      request(
          R"("metadata":{"user_id":"u"},"service_tier":"auto","novelty":1,"system":"Be brief.")"));
  CHECK(answer.status == 200);
  CHECK(answer.has_header("x-lockstep-ignored-fields: novelty\r\n"));
  CHECK(answer.has_header("request-id: req_"));
  CHECK(without_ids(answer.body) ==
        R"({"id":"msg_ID","type":"message","role":"assistant","model":"org/Tiny-Model",)"
        R"("content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,)"
        R"("usage":{"input_tokens":82,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,)"
        R"("output_tokens":2,"output_tokens_details":{"thinking_tokens":0}}})");
  CHECK(model.last_prompt() ==
        R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain?"}])");
}

TEST_CASE("a streamed message consists of named events in order") {
  ServedTemplate model(kPlainTemplate);
  model.server.model->says("é");
  const Answer answer = model.server.post("/messages", request(R"("stream":true)"));
  CHECK(answer.has_header("Content-Type: text/event-stream"));
  CHECK(
      without_ids(stream_text(answer.body)) ==
      "event: message_start\n"
      R"(data: {"type":"message_start","message":{"id":"msg_ID","type":"message",)"
      R"("role":"assistant","model":"org/Tiny-Model","content":[],"stop_reason":null,)"
      R"("stop_sequence":null,"usage":{"input_tokens":38,"cache_creation_input_tokens":0,)"
      R"("cache_read_input_tokens":0,"output_tokens":0,)"
      R"("output_tokens_details":{"thinking_tokens":0}}}})"
      "\n\nevent: content_block_start\n"
      R"(data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}})"
      "\n\nevent: content_block_delta\n"
      R"(data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é"}})"
      "\n\nevent: content_block_stop\n"
      R"(data: {"type":"content_block_stop","index":0})"
      "\n\nevent: message_delta\n"
      R"(data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},)"
      R"("usage":{"input_tokens":38,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,)"
      R"("output_tokens":2,"output_tokens_details":{"thinking_tokens":0}}})"
      "\n\nevent: message_stop\n"
      R"(data: {"type":"message_stop"})"
      "\n\n");
}

TEST_CASE("a stream begins with the number of cached prompt tokens") {
  ServedTemplate model(kPlainTemplate);
  model.server.model->has_cached(30);
  model.server.model->says("a");
  const std::string text =
      stream_text(model.server.post("/v1/messages", request(R"("stream":true)")).body);
  const std::string usage =
      R"("usage":{"input_tokens":8,"cache_creation_input_tokens":0,"cache_read_input_tokens":30,)";
  const size_t delta = text.find("event: message_delta");
  REQUIRE(delta != std::string::npos);
  CHECK(text.substr(0, text.find("\n\n")).find(usage) != std::string::npos);
  CHECK(text.find(usage, delta) != std::string::npos);
}

TEST_CASE("pings are sent while a prompt is processed, and the message begins after it") {
  ServedTemplate model(kPlainTemplate, std::chrono::milliseconds(20));
  RawClient client(model.server.port());
  client.send(Served::post_text("/v1/messages", request(R"("stream":true)")));
  const FakeModel::Running running = model.server.model->request(0);
  CHECK(client.read_until("\r\n\r\n").find("200 OK") != std::string::npos);
  const std::string silence = client.read_until("\n\n") + client.read_until("\n\n");
  CHECK(silence.find("event: ping\ndata: {\"type\":\"ping\"}\n\n") != std::string::npos);
  CHECK(silence.find("message_start") == std::string::npos);
  running.start(5);
  FakeModel::say(running, "a");
  running.end(FinishReason::kStop);
  const std::string rest = client.read_to_end();
  const size_t start = rest.find("event: message_start");
  REQUIRE(start != std::string::npos);
  CHECK(rest.find(R"("cache_read_input_tokens":5,"output_tokens":0)") > start);
  CHECK(rest.find("event: content_block_start") > start);
  CHECK(rest.find("event: message_start", start + 1) == std::string::npos);
}

TEST_CASE("reasoning and calls are separate blocks") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  qwen.server.model->says(
      "<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n"
      "{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>");
  const Json answer =
      qwen.server
          .post("/v1/messages", R"({"max_tokens":2000,"messages":[{"role":"user","content":"x"}],)"
                                R"("thinking":{"type":"enabled","budget_tokens":1024},)" +
                                    std::string(kClaudeTools) + "}")
          .json();
  CHECK(without_ids(dump_json(at(answer, "content"))) ==
        R"([{"type":"thinking","thinking":"Hm.","signature":"bG9ja3N0ZXA="},)"
        R"({"type":"text","text":"I look."},)"
        R"({"type":"tool_use","id":"call_ID","name":"weather","input":{"city":"Bonn"}}])");
  CHECK(at(answer, "stop_reason") == "tool_use");
  CHECK(at(answer, "usage", "output_tokens_details", "thinking_tokens") == 13);
}

TEST_CASE("a call is streamed as its JSON is written") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  qwen.server.model->says(
      "<think>\nHm.\n</think>\n\n<tool_call>\n"
      "{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>");
  const Answer answer =
      qwen.server.post("/v1/messages", request(std::string(kClaudeTools) + R"(,"stream":true)"));
  const std::string text = without_ids(stream_text(answer.body));
  const auto contains = [&](const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  CHECK(contains(R"("index":0,"content_block":{"type":"thinking","thinking":"","signature":""}})"));
  CHECK(contains(R"("index":0,"delta":{"type":"thinking_delta","thinking":"H"}})"));
  CHECK(contains(R"("index":0,"delta":{"type":"signature_delta","signature":"bG9ja3N0ZXA="}})"
                 "\n\nevent: content_block_stop\n"
                 R"(data: {"type":"content_block_stop","index":0})"
                 "\n\nevent: content_block_start\n"
                 R"(data: {"type":"content_block_start","index":1,"content_block":)"
                 R"({"type":"tool_use","id":"call_ID","name":"weather","input":{}}})"));
  CHECK(contains(R"("index":1,"delta":{"type":"input_json_delta","partial_json":"{"}})"));
  CHECK(contains(R"("delta":{"stop_reason":"tool_use","stop_sequence":null})"));
  std::string input;
  for (std::string_view rest = text;;) {
    constexpr std::string_view kKey = R"("partial_json":)";
    const size_t place = rest.find(kKey);
    if (place == std::string_view::npos) break;
    rest.remove_prefix(place + kKey.size());
    input += text_at(parse_json(rest.substr(0, rest.find('}', rest.find('"', 1)))).value());
  }
  CHECK(input == R"({"city": "Bonn"})");
}

TEST_CASE("the stop reason says how an answer ended") {
  ServedTemplate model(kPlainTemplate);
  model.server.model->says("one END two");
  Json answer =
      model.server.post("/v1/messages", request(R"("stop_sequences":["X","END"])")).json();
  CHECK(at(answer, "stop_reason") == "stop_sequence");
  CHECK(at(answer, "stop_sequence") == "END");
  CHECK(at(answer, "content", 0, "text") == "one ");
  answer =
      model.server
          .post("/v1/messages", R"({"max_tokens":3,"messages":[{"role":"user","content":"x"}]})")
          .json();
  CHECK(at(answer, "stop_reason") == "max_tokens");
  CHECK(at(answer, "content", 0, "text") == "one");
  model.server.model->says("");
  answer = model.server.post("/v1/messages", request("")).json();
  CHECK(at(answer, "content").get_array().empty());
  CHECK(at(answer, "stop_reason") == "end_turn");
}

TEST_CASE("an answer that fills the context says so") {
  ServedTemplate model(kPlainTemplate);
  std::thread client([&] {
    const Json answer =
        model.server
            .post("/v1/messages",
                  R"({"max_tokens":5000,"messages":[{"role":"user","content":""}]})")
            .json();
    CHECK(at(answer, "stop_reason") == "model_context_window_exceeded");
  });
  const FakeModel::Running running = model.server.model->request(0);
  FakeModel::say(running, "abc");
  running.end(FinishReason::kLength);
  client.join();
}

TEST_CASE("blocks of a conversation become messages that templates know") {
  ServedTemplate model(kPlainTemplate);
  CHECK(shown_messages(
            model,
            R"({"role":"user","content":[{"type":"text","text":"a","cache_control":null},)"
            R"({"type":"text","text":"b"}]},{"role":"user","content":"c"},)"
            R"({"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},)"
            R"({"type":"redacted_thinking","data":"x"},{"type":"text","text":"d"},)"
            R"({"type":"tool_use","id":"t1","name":"f","input":{"k":1}}]},)"
            R"({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",)"
            R"("content":[{"type":"text","text":"no"}],"is_error":true},)"
            R"({"type":"text","text":"e"}]})",
            R"("system":[{"type":"text","text":"S1"},{"type":"text","text":"S2"}])") ==
        R"([{"role": "system", "content": "S1\nS2"}, {"role": "user", "content": "a\nb\nc"}, )"
        R"({"role": "assistant", "tool_calls": )"
        R"([{"id": "t1", "type": "function", "function": {"name": "f", "arguments": {"k": 1}}}], )"
        R"("content": "d", "reasoning_content": "hm"}, )"
        R"({"role": "tool", "tool_call_id": "t1", "content": "Error: no"}, )"
        R"({"role": "user", "content": "e"}])");
  CHECK(shown_messages(model, R"({"role":"user","content":[{"type":"document","title":"T",)"
                              R"("source":{"type":"text","media_type":"text/plain","data":"D"}}]},)"
                              R"({"role":"system","content":"now"})") ==
        R"([{"role": "user", "content": "T\nD"}, {"role": "system", "content": "now"}])");
}

TEST_CASE("a changing billing line is not part of the prompt") {
  ServedTemplate model(kPlainTemplate);
  const std::string user = R"({"role":"user","content":"x"})";
  const std::string expected =
      R"([{"role": "system", "content": "You are."}, {"role": "user", "content": "x"}])";
  for (const char* hash : {"cch=00001;", "cch=7a3ff;"}) {
    const std::string line = std::string("x-anthropic-billing-header: cc_version=2.1; ") + hash;
    CHECK(shown_messages(model, user,
                         R"("system":[{"type":"text","text":")" + line +
                             R"("},{"type":"text","text":"You are."}])") == expected);
    CHECK(shown_messages(model, user, R"("system":")" + line + R"(\nYou are.")") == expected);
  }
}

TEST_CASE("thinking is enabled if the template supports it and otherwise reported") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const std::string user = R"({"role":"user","content":"x"})";
  const std::string quiet = shown_messages(qwen, user);
  CHECK(quiet.ends_with("<think>\n\n</think>\n\n"));
  CHECK(shown_messages(qwen, user, R"("thinking":{"type":"disabled"})") == quiet);
  CHECK(shown_messages(qwen, user, R"("thinking":{"type":"adaptive"})").ends_with("assistant\n"));
  const std::string asks =
      R"({"max_tokens":2000,"messages":[{"role":"user","content":"x"}],"thinking":)"
      R"({"type":"enabled","budget_tokens":1024},"output_config":{"effort":"max"}})";
  CHECK(qwen.server.post("/v1/messages", asks)
            .has_header("x-lockstep-ignored-fields: thinking.budget_tokens, effort\r\n"));
  ServedTemplate plain(kPlainTemplate);
  plain.server.model->says("ok");
  CHECK(plain.server.post("/v1/messages", asks)
            .has_header("x-lockstep-ignored-fields: thinking.budget_tokens, thinking, effort\r\n"));
  ServedTemplate effort("{{ reasoning_effort }}{{ messages[0].content }}");
  CHECK(shown_messages(effort, user, R"("output_config":{"effort":"max"})") == "highx");
}

TEST_CASE("hidden reasoning leaves a block without text") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  qwen.server.model->says("<think>\nHm.\n</think>\n\nYes");
  const Answer answer = qwen.server.post(
      "/v1/messages", request(R"("thinking":{"type":"adaptive","display":"omitted"})"));
  CHECK(dump_json(at(answer.json(), "content")) ==
        R"([{"type":"thinking","thinking":"","signature":"bG9ja3N0ZXA="},)"
        R"({"type":"text","text":"Yes"}])");
}

TEST_CASE("a partial answer is continued") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  CHECK(
      shown_messages(qwen, R"({"role":"user","content":"x"},{"role":"assistant","content":"The"})")
          .ends_with("The"));
}

TEST_CASE("names of Claude mean the loaded model, or the configured one") {
  const std::string body =
      R"({"model":"claude-haiku-4-5","max_tokens":9,"messages":[{"role":"user","content":"x"}]})";
  Served alone;
  alone.model->says("ok");
  CHECK(alone.post("/v1/messages", body).status == 200);
  CHECK(alone.post("/v1/chat/completions", body).status == 404);

  const auto second = std::make_shared<FakeModel>();
  second->says("second");
  second->set_name("org/Second");
  Served both([](ServerOptions&) {}, nullptr, {second});
  const Answer refused = both.post("/v1/messages", body);
  CHECK(refused.status == 404);
  CHECK(at(refused.json(), "error", "type") == "not_found_error");
  CHECK(text_at(at(refused.json(), "error", "message")).find("--claude-model") !=
        std::string::npos);
  Served chosen([](ServerOptions& options) { options.claude_model = "second"; }, nullptr, {second});
  CHECK(at(chosen.post("/v1/messages", body).json(), "model") == "org/Second");
}

TEST_CASE("tokens of a request are counted as they would be read") {
  ServedTemplate model(kPlainTemplate);
  const std::string body = R"({"messages":[{"role":"user","content":"Rain?"}],"later":1})";
  const Answer counted = model.server.post("/v1/messages/count_tokens", body);
  CHECK(counted.status == 200);
  CHECK(counted.body == R"({"input_tokens":38})");
  CHECK(counted.has_header("x-lockstep-ignored-fields: later\r\n"));
  CHECK(model.server.model->request_count() == 0);
}

TEST_CASE("errors have Anthropic's shape wherever they are detected") {
  Served server;
  const auto error_of = [](const Answer& answer) {
    const Json json = answer.json();
    CHECK(at(json, "type") == "error");
    return std::to_string(answer.status) + " " + text_at(at(json, "error", "type"));
  };
  const Answer bad = server.post("/v1/messages", "{");
  CHECK(error_of(bad) == "400 invalid_request_error");
  CHECK(text_at(at(bad.json(), "request_id")).substr(0, 4) == "req_");
  CHECK(error_of(server.post("/v1/messages", std::string(100'001, ' '))) ==
        "413 request_too_large");
  CHECK(error_of(server.post("/v1/messages/batches", "{}")) == "404 not_found_error");
  CHECK(error_of(server.get("/v1/messages")) == "405 invalid_request_error");
  server.model->refuses({ErrorCode::kExhausted, "full"});
  const Answer full = server.post("/v1/messages", request(""));
  CHECK(error_of(full) == "429 rate_limit_error");
  CHECK(full.has_header("Retry-After: 1\r\n"));
  server.model->refuses({ErrorCode::kPeerLost, "lost"});
  CHECK(error_of(server.post("/v1/messages", request(""))) == "529 overloaded_error");
  server.model->refuses({ErrorCode::kInternal, "broken"});
  CHECK(error_of(server.post("/v1/messages", request(""))) == "500 api_error");
  const Answer lengthy =
      server.post("/v1/messages",
                  request("", R"({"role":"user","content":")" + std::string(2000, 'x') + "\"}"));
  CHECK(at(lengthy.json(), "error", "message") == "prompt is too long: 2001 tokens > 999 maximum");
}

TEST_CASE("an error in the middle of a stream is an event, and silence is a ping") {
  ServedTemplate model(kPlainTemplate, std::chrono::milliseconds(20));
  std::string text;
  std::thread client([&] {
    text = stream_text(model.server.post("/v1/messages", request(R"("stream":true)")).body);
  });
  const FakeModel::Running running = model.server.model->request(0);
  RawClient other(model.server.port());  // long enough for a tick
  other.send("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  other.read_to_end();
  FakeModel::say(running, "a");
  running.end(Error{ErrorCode::kPeerLost, "rank 1 is lost"});
  client.join();
  CHECK(text.find(R"("text_delta","text":"a")") != std::string::npos);
  CHECK(without_ids(text).ends_with(
      "event: error\n"
      R"(data: {"type":"error","error":{"type":"overloaded_error","message":"rank 1 is lost"},)"
      R"("request_id":"req_ID"})"
      "\n\n"));
}

TEST_CASE("a request id of the client comes back") {
  Served server;
  server.model->says("ok");
  const std::string post =
      Served::post_text("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})");
  const Answer answer =
      server.exchange(post.substr(0, post.find("Host:")) + "X-Request-Id: mine-1\r\n" +
                      post.substr(post.find("Host:")));
  CHECK(answer.has_header("x-request-id: mine-1\r\n"));
  CHECK(server.get("/v1/models").has_header("x-request-id: req_"));
}

TEST_CASE("fields of messages are either supported or refused by name") {
  const auto field = [](const std::string& text) { return messages_verdict(request(text)); };
  CHECK(messages_verdict(R"({"messages":[{"role":"user","content":"x"}]})") ==
        "max_tokens invalid_value");
  CHECK(messages_verdict(R"({"max_tokens":1})") == "messages invalid_value");
  CHECK(messages_verdict(R"({"max_tokens":1,"messages":[]})") == "messages invalid_value");
  CHECK(field(R"("max_tokens":0)") == "max_tokens invalid_value");
  CHECK(field(R"("temperature":1.5)") == "temperature invalid_value");
  CHECK(field(R"("stop_sequences":"x")") == "stop_sequences invalid_value");
  CHECK(field(R"("stop_sequences":[""])") == "stop_sequences invalid_value");
  CHECK(field(R"("stop_sequences":[])") == "ok");
  CHECK(field(R"("thinking":{"type":"on"})") == "thinking.type invalid_value");
  CHECK(field(R"("thinking":{"type":"enabled"})") == "thinking.budget_tokens invalid_value");
  CHECK(field(R"("thinking":{"type":"enabled","budget_tokens":1024})") ==
        "thinking.budget_tokens invalid_value");
  CHECK(field(R"("service_tier":"gold")") == "service_tier invalid_value");
  CHECK(field(R"("speed":"fast")") == "speed unsupported_parameter");
  CHECK(field(R"("speed":"standard","inference_geo":"global","mcp_servers":[])") == "ok");
  CHECK(field(R"("mcp_servers":[{"url":"x"}])") == "mcp_servers unsupported_parameter");
  CHECK(field(R"("container":"c")") == "container unsupported_parameter");
  CHECK(field(R"("context_management":{"edits":[{"type":"clear_thinking_20251015"}]})") == "ok");
  CHECK(field(R"("context_management":{"edits":[{"type":"compact_20260112"}]})") ==
        "context_management.edits unsupported_parameter");
  CHECK(field(R"("output_config":{"effort":"huge"})") == "output_config.effort invalid_value");
  CHECK(field(R"("output_config":{"format":{"type":"text"}})") ==
        "output_config.format.type invalid_value");
  CHECK(field(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])") ==
        "tools[0].type unsupported_parameter");
  CHECK(field(R"("tools":[{"name":"f"}])") == "tools[0] invalid_value");
  CHECK(field(R"("tool_choice":{"type":"any"})") == "tool_choice invalid_value");
  CHECK(field(R"("tool_choice":{"type":"maybe"})") == "tool_choice.type invalid_value");
  CHECK(field(std::string(kClaudeTools) + R"(,"tool_choice":{"type":"tool","name":"g"})") ==
        "tool_choice.name invalid_value");
  CHECK(field(std::string(kClaudeTools) + R"(,"tool_choice":{"type":"none"})") == "ok");
}

TEST_CASE("invalid messages are refused with their place") {
  const auto message = [](const std::string& text) { return messages_verdict(request("", text)); };
  const auto block = [&](const std::string& role, const std::string& text) {
    return message(R"({"role":")" + role + R"(","content":[)" + text + "]}");
  };
  CHECK(message("5") == "messages[0] invalid_value");
  CHECK(message(R"({"role":"tool","content":"x"})") == "messages[0].role invalid_value");
  CHECK(message(R"({"role":"user"})") == "messages[0].content invalid_value");
  CHECK(block("user", "5") == "messages[0].content[0] invalid_value");
  CHECK(block("user", R"({"type":"text"})") == "messages[0].content[0].text invalid_value");
  CHECK(block("user", R"({"type":"image","source":{}})") ==
        "messages[0].content[0] unsupported_parameter");
  CHECK(block("user", R"({"type":"document","source":{"type":"base64"}})") ==
        "messages[0].content[0] unsupported_parameter");
  CHECK(block("user", R"({"type":"tool_result"})") ==
        "messages[0].content[0].tool_use_id invalid_value");
  CHECK(block("user", R"({"type":"tool_result","tool_use_id":"a","content":[{"type":"image"}]})") ==
        "messages[0].content[0].content[0] unsupported_parameter");
  CHECK(block("assistant", R"({"type":"tool_use","id":"a","name":"f"})") ==
        "messages[0].content[0] invalid_value");
  CHECK(block("assistant", R"({"type":"tool_use","id":"a","name":"f","input":{}})") ==
        "messages invalid_value");
  CHECK(block("assistant", R"({"type":"server_tool_use","id":"a"})") ==
        "messages[0].content[0] unsupported_parameter");
  CHECK(message(R"({"role":"assistant","content":""})") == "messages invalid_value");
}

}  // namespace lockstep

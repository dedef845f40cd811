// OpenAI's Responses API: from a client's request to the model's prompt, and from the model's
// output to the client's events.
#include <regex>

#include "chat/calls/output_parser.h"
#include "server/openai/responses_request.h"
#include "server/openai/responses_writer.h"
#include "server/refusal.h"
#include "server/served_template.h"

namespace lockstep {
namespace {

std::string without_ids_and_times(const std::string& text) {
  static const std::regex kTime("\"created_at\":[0-9]+");
  return std::regex_replace(without_ids(text), kTime, "\"created_at\":0");
}

std::string responses_verdict(const std::string& body) {
  return refusal_of(parse_responses_request(body));
}

std::string shown_input(ServedTemplate& model, const std::string& input,
                        const std::string& fields = "") {
  model.server.model->says("ok");
  const Answer answer = model.server.post("/v1/responses", R"({"input":)" + input + fields + "}");
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  return model.last_prompt();
}

// Reasoning, a text and a call, in pieces of `step` bytes.
std::vector<Json> told_events(ChatWriter& writer, size_t step, std::string_view finish_reason) {
  static const std::string kSaid =
      "<think>\nHm é.\n</think>\n\nI look.\n<tool_call>\n"
      "{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\"}}\n</tool_call>";
  OutputParser::Options options;
  options.format = find_tool_format("hermes");
  options.tools = std::make_shared<const ToolSet>(
      parse_json(R"([{"function":{"name":"weather","parameters":{}}}])").value());
  OutputParser parser(options);
  std::string text = writer.begin({});
  const auto take = [&](const std::vector<OutputDelta>& deltas) {
    for (const OutputDelta& delta : deltas) text += writer.delta(delta);
  };
  for (size_t at = 0; at < kSaid.size(); at += step) take(parser.push(kSaid.substr(at, step)));
  take(parser.finish(false));
  text += writer.end({.finish_reason = finish_reason, .stop_string = "", .usage = {}});
  std::vector<Json> events;
  while (!text.empty()) {
    const size_t data = text.find("\ndata: ");
    const size_t end = text.find("\n\n");
    const Json event = parse_json(text.substr(data + 7, end - data - 7)).value();
    CHECK("event: " + text_at(at(event, "type")) == text.substr(0, data));
    CHECK(at(event, "sequence_number") == Json(events.size()));
    events.push_back(event);
    text.erase(0, end + 2);
  }
  return events;
}

}  // namespace

TEST_CASE("a response has exactly OpenAI's shape") {
  ServedTemplate model(kPlainTemplate);
  model.server.model->says("Hi");
  const Answer answer = model.server.post(
      "/v1/responses",
      R"({"model":"tiny-model","input":"Rain?","instructions":"Be brief.","store":true,)"
      R"("metadata":{"a":"b"},"temperature":0.5,"novelty":1})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header("x-lockstep-ignored-fields: novelty\r\n"));
  CHECK(without_ids_and_times(answer.body) ==
        R"({"id":"resp_ID","object":"response","created_at":0,"status":"completed",)"
        R"("background":false,"error":null,"incomplete_details":null,"model":"org/Tiny-Model",)"
        R"("output":[{"id":"msg_ID","type":"message","status":"completed","role":"assistant",)"
        R"("content":[{"type":"output_text","text":"Hi","annotations":[],"logprobs":[]}]}],)"
        R"("previous_response_id":null,"service_tier":"default","store":false,"top_logprobs":0,)"
        R"("usage":{"input_tokens":82,"input_tokens_details":{"cached_tokens":0},)"
        R"("output_tokens":2,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":84},)"
        R"("reasoning":{"effort":null,"summary":null},"text":{"format":{"type":"text"}},)"
        R"("instructions":"Be brief.","max_output_tokens":null,"metadata":{"a":"b"},)"
        R"("parallel_tool_calls":true,"prompt_cache_key":null,"safety_identifier":null,)"
        R"("temperature":0.5,"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled",)"
        R"("user":null})");
  CHECK(model.last_prompt() ==
        R"([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain?"}])");
}

TEST_CASE("a streamed response consists of numbered events in order") {
  ServedTemplate model(kPlainTemplate);
  model.server.model->says("é");
  const Answer answer = model.server.post("/responses", R"({"input":"x","stream":true})");
  const std::string text =
      std::regex_replace(without_ids_and_times(stream_text(answer.body)),
                         std::regex("\"response\":\\{.*\\}\\}"), "\"response\":R}");
  CHECK(text ==
        "event: response.created\n"
        R"(data: {"type":"response.created","sequence_number":0,"response":R})"
        "\n\nevent: response.in_progress\n"
        R"(data: {"type":"response.in_progress","sequence_number":1,"response":R})"
        "\n\nevent: response.output_item.added\n"
        R"(data: {"type":"response.output_item.added","sequence_number":2,"output_index":0,)"
        R"("item":{"id":"msg_ID","type":"message","status":"in_progress","role":"assistant",)"
        R"("content":[]}})"
        "\n\nevent: response.content_part.added\n"
        R"(data: {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_ID",)"
        R"("output_index":0,"content_index":0,"part":{"type":"output_text","text":"",)"
        R"("annotations":[],"logprobs":[]}})"
        "\n\nevent: response.output_text.delta\n"
        R"(data: {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_ID",)"
        R"("output_index":0,"content_index":0,"delta":"é","logprobs":[]})"
        "\n\nevent: response.output_text.done\n"
        R"(data: {"type":"response.output_text.done","sequence_number":5,"item_id":"msg_ID",)"
        R"("output_index":0,"content_index":0,"text":"é","logprobs":[]})"
        "\n\nevent: response.content_part.done\n"
        R"(data: {"type":"response.content_part.done","sequence_number":6,"item_id":"msg_ID",)"
        R"("output_index":0,"content_index":0,"part":{"type":"output_text","text":"é",)"
        R"("annotations":[],"logprobs":[]}})"
        "\n\nevent: response.output_item.done\n"
        R"(data: {"type":"response.output_item.done","sequence_number":7,"output_index":0,)"
        R"("item":{"id":"msg_ID","type":"message","status":"completed","role":"assistant",)"
        R"("content":[{"type":"output_text","text":"é","annotations":[],"logprobs":[]}]}})"
        "\n\nevent: response.completed\n"
        R"(data: {"type":"response.completed","sequence_number":8,"response":R})"
        "\n\n");
}

TEST_CASE("events add up to the items that they end with, wherever the text was cut") {
  for (const bool wants_summary : {false, true}) {
    for (const size_t step : {1, 2, 3, 5, 7, 11, 1000}) {
      const auto writer =
          make_response_writer({.model = "m", .echoed = {}, .wants_summary = wants_summary});
      std::vector<std::string> texts;
      JsonArray items;
      std::vector<Json> events = told_events(*writer, step, "tool_calls");
      for (const Json& event : events) {
        const std::string type = text_at(at(event, "type"));
        if (type == "response.output_item.added") texts.emplace_back();
        if (type.ends_with(".delta")) texts.back() += text_at(at(event, "delta"));
        if (type == "response.output_item.done") items.push_back(at(event, "item"));
      }
      CHECK(texts == std::vector<std::string>{"Hm é.", "I look.", R"({"city": "Bonn"})"});
      const Json last = at(events.back(), "response");
      CHECK(at(events.back(), "type") == "response.completed");
      CHECK(dump_json(at(last, "output")) == dump_json(items));
      CHECK(without_ids_and_times(dump_json(at(last, "output", 0))) ==
            (wants_summary
                 ? R"({"id":"rs_ID","type":"reasoning","status":"completed","summary":)"
                   R"([{"type":"summary_text","text":"Hm é."}],"content":[],)"
                   R"("encrypted_content":null})"
                 : R"({"id":"rs_ID","type":"reasoning","status":"completed","summary":[],)"
                   R"("content":[{"type":"reasoning_text","text":"Hm é."}],)"
                   R"("encrypted_content":null})"));
      CHECK(without_ids_and_times(dump_json(at(last, "output", 2))) ==
            R"({"id":"fc_ID","type":"function_call","status":"completed",)"
            R"("arguments":"{\"city\": \"Bonn\"}","call_id":"call_ID","name":"weather"})");
    }
  }
  const auto writer = make_response_writer({.model = "m", .echoed = {}});
  const std::vector<Json> cut = told_events(*writer, 9, "length");
  CHECK(at(cut.back(), "type") == "response.incomplete");
  CHECK(at(cut.back(), "response", "incomplete_details", "reason") == "max_output_tokens");
  CHECK(at(cut.back(), "response", "output", 2, "status") == "incomplete");
}

TEST_CASE("items of a conversation become messages that templates know") {
  ServedTemplate model(kPlainTemplate);
  CHECK(
      shown_input(
          model,
          R"([{"role":"developer","content":"D"},)"
          R"({"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]},)"
          R"({"role":"user","content":"b"},)"
          R"({"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],)"
          R"("encrypted_content":"x"},)"
          R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]},)"
          R"({"type":"function_call","call_id":"c1","name":"f","arguments":"{\"k\":1}"},)"
          R"({"type":"function_call_output","call_id":"c1",)"
          R"("output":[{"type":"input_text","text":"1"}]},)"
          R"({"role":"user","content":"d"}])",
          R"(,"instructions":"I")") ==
      R"([{"role": "system", "content": "I\nD"}, {"role": "user", "content": "a\nb"}, )"
      R"({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", )"
      R"("function": {"name": "f", "arguments": {"k": 1}}}], "content": "c", )"
      R"("reasoning_content": "hm"}, )"
      R"({"role": "tool", "tool_call_id": "c1", "content": "1"}, )"
      R"({"role": "user", "content": "d"}])");
}

TEST_CASE("tools that cannot run here are left out and named") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  qwen.server.model->says("ok");
  const Answer answer = qwen.server.post(
      "/v1/responses",
      R"({"input":"x","reasoning":{"effort":"high"},"tools":[{"type":"web_search"},)"
      R"({"type":"function","name":"weather","description":"d","parameters":{"type":"object"},)"
      R"("strict":false},{"type":"local_shell"},{"type":"web_search"}]})");
  CHECK(answer.status == 200);
  CHECK(answer.has_header(
      "x-lockstep-ignored-fields: tools.web_search, tools.local_shell, effort\r\n"));
  CHECK(qwen.last_prompt().find(R"("name": "weather")") != std::string::npos);
}

TEST_CASE("nothing is stored, and requests for stored responses are refused") {
  Served server;
  CHECK(server.get("/v1/responses/resp_1").status == 404);
  CHECK(at(server.get("/v1/responses/resp_1/input_items").json(), "error", "code") ==
        "response_not_found");
  CHECK(server.post("/v1/responses/resp_1/cancel", "").status == 404);
  CHECK(responses_verdict(R"({"input":"x","previous_response_id":"resp_1"})") ==
        "previous_response_id unsupported_parameter");
}

TEST_CASE("an error in the middle of a streamed response ends it as failed") {
  ServedTemplate model(kPlainTemplate);
  std::string text;
  std::thread client([&] {
    text = stream_text(model.server.post("/v1/responses", R"({"input":"x","stream":true})").body);
  });
  const FakeModel::Running running = model.server.model->request(0);
  FakeModel::say(running, "a");
  running.end(Error{ErrorCode::kPeerLost, "rank 1 is lost"});
  client.join();
  CHECK(text.find("event: response.failed\n") != std::string::npos);
  CHECK(text.find(R"("error":{"code":"server_error","message":"rank 1 is lost"})") !=
        std::string::npos);
}

TEST_CASE("fields of responses are either supported or refused by name") {
  const auto field = [](const std::string& text) {
    return responses_verdict(R"({"input":"x",)" + text + "}");
  };
  CHECK(responses_verdict("{}") == "input invalid_value");
  CHECK(responses_verdict(R"({"input":[]})") == "input invalid_value");
  CHECK(responses_verdict(R"({"input":5})") == "input invalid_value");
  CHECK(field(R"("max_output_tokens":0)") == "max_output_tokens invalid_value");
  CHECK(field(R"("temperature":3)") == "temperature invalid_value");
  CHECK(field(R"("reasoning":{"effort":"huge"})") == "reasoning.effort invalid_value");
  CHECK(field(R"("reasoning":{"summary":"long"})") == "reasoning.summary invalid_value");
  CHECK(field(R"("text":{"format":{"type":"xml"}})") == "text.format.type invalid_value");
  CHECK(field(R"("text":{"format":{"type":"text"},"verbosity":"medium"})") == "ok");
  CHECK(field(R"("text":{"verbosity":"low"})") == "text.verbosity unsupported_parameter");
  CHECK(field(R"("truncation":"auto")") == "truncation unsupported_parameter");
  CHECK(field(R"("background":true)") == "background unsupported_parameter");
  CHECK(field(R"("conversation":"c")") == "conversation unsupported_parameter");
  CHECK(field(R"("prompt":{"id":"p"})") == "prompt unsupported_parameter");
  CHECK(field(R"("service_tier":"priority")") == "service_tier unsupported_parameter");
  CHECK(field(R"("include":["reasoning.encrypted_content"],"store":false,"user":"u",)"
              R"("prompt_cache_key":"k","service_tier":"auto","truncation":"disabled")") == "ok");
  CHECK(field(R"("include":["message.output_text.logprobs"])") == "include unsupported_parameter");
  CHECK(field(R"("tools":[{"type":"function"}])") == "tools[0].name invalid_value");
  CHECK(field(R"("tools":[5])") == "tools[0] invalid_value");
  CHECK(field(R"("tool_choice":{"type":"web_search"})") == "tool_choice unsupported_parameter");
  const auto item = [](const std::string& text) {
    return responses_verdict(R"({"input":[)" + text + "]}");
  };
  CHECK(item("5") == "input[0] invalid_value");
  CHECK(item(R"({"role":"robot","content":"x"})") == "input[0].role invalid_value");
  CHECK(item(R"({"role":"user","content":[{"type":"input_image"}]})") ==
        "input[0].content[0] unsupported_parameter");
  CHECK(item(R"({"type":"item_reference","id":"x"})") == "input[0].type unsupported_parameter");
  CHECK(item(R"({"type":"function_call","call_id":"a","name":"f"})") ==
        "input[0].arguments invalid_value");
  CHECK(item(R"({"type":"function_call","call_id":"a","name":"f","arguments":"{}"})") ==
        "input invalid_value");
  CHECK(item(R"({"type":"function_call_output","output":"x"})") ==
        "input[0].call_id invalid_value");
}

TEST_CASE("a silent stream begins once, and is kept alive by repeating its first event") {
  ServedTemplate model("{{ messages | tojson }}", std::chrono::milliseconds(20));
  RawClient client(model.server.port());
  client.send(Served::post_text("/v1/responses", R"({"input":"x","stream":true})"));
  const FakeModel::Running running = model.server.model->request(0);
  CHECK(client.read_until("event: response.created\n").find("200 OK") != std::string::npos);
  client.read_until("event: response.in_progress\n");  // at the beginning
  client.read_until("event: response.in_progress\n");  // during the silence
  FakeModel::say(running, "a");
  running.end(FinishReason::kStop);
  const std::string rest = client.read_to_end();
  CHECK(rest.find("response.created") == std::string::npos);
  CHECK(rest.find("event: response.completed") != std::string::npos);
}

}  // namespace lockstep

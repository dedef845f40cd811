// Reasoning and tool calls in chat completions: from the model's output to the client's answer.
#include <algorithm>
#include <memory>
#include <set>

#include "server/served_template.h"

namespace lockstep {
namespace {

// Like ByteTokenizer, with some markers as special tokens from 258 on.
class MarkerTokenizer : public ByteTokenizer {
 public:
  explicit MarkerTokenizer(std::vector<std::string> markers) : markers_(std::move(markers)) {}

  int vocab_size() const override { return 258 + static_cast<int>(markers_.size()); }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const override {
    const auto marker = std::find(markers_.begin(), markers_.end(), text);
    if (!options.parse_special || marker == markers_.end()) {
      return ByteTokenizer::encode(text, options);
    }
    return {258 + static_cast<int32_t>(marker - markers_.begin())};
  }

 private:
  const std::vector<std::string> markers_;
};

const char* const kForecastTools =
    R"(,"tools":[{"type":"function","function":{"name":"weather","description":"Of a city.",)"
    R"("parameters":{"type":"object","properties":{"city":{"type":"string"},)"
    R"("days":{"type":"integer"}}}}}])";

const std::string kHermesCall =
    "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Bonn\", \"days\": 2}}\n"
    "</tool_call>";

}  // namespace

TEST_CASE("a call is a message with tool_calls, null content and its own finish reason") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const Json choice = qwen.choice(kHermesCall, kForecastTools);
  CHECK(at(choice, "finish_reason") == "tool_calls");
  CHECK(at(choice, "message", "content").is_null());
  CHECK(find(at(choice, "message"), "reasoning_content") == nullptr);
  REQUIRE(at(choice, "message", "tool_calls").as_array().size() == 1);
  const Json call = at(choice, "message", "tool_calls", 0);
  CHECK(text_at(at(call, "id")).size() == 29);
  CHECK(text_at(at(call, "id")).substr(0, 5) == "call_");
  CHECK(at(call, "type") == "function");
  CHECK(dump_json(at(call, "function")) ==
        R"({"name":"weather","arguments":"{\"city\": \"Bonn\", \"days\": 2}"})");
}

TEST_CASE("reasoning, text and two calls are separated") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const Json choice =
      qwen.choice("<think>\nHm.\n</think>\n\nI look.\n" + kHermesCall + "\n" + kHermesCall,
                  std::string(kForecastTools) + R"(,"tool_choice":"auto")");
  CHECK(at(choice, "message", "reasoning_content") == "Hm.");
  CHECK(at(choice, "message", "content") == "I look.");
  REQUIRE(at(choice, "message", "tool_calls").as_array().size() == 2);
  CHECK(at(choice, "message", "tool_calls", 0, "id") !=
        at(choice, "message", "tool_calls", 1, "id"));
}

TEST_CASE("a streamed call has its id and name first, its arguments, then the finish reason") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const auto chunks = qwen.chunks("<think>\nHm.\n</think>\n\nHi\n" + kHermesCall, kForecastTools);
  REQUIRE(chunks.size() > 8);
  CHECK(dump_json(at(chunks[0], "delta")) == R"({"role":"assistant","content":""})");
  CHECK(dump_json(at(chunks[1], "delta")) == R"({"reasoning_content":"H"})");
  std::string content;
  std::string arguments;
  int announced = 0;
  for (size_t i = 1; i + 1 < chunks.size(); ++i) {
    CHECK(at(chunks[i], "finish_reason").is_null());
    const Json delta = at(chunks[i], "delta");
    if (const Json* text = find(delta, "content")) content += text_at(*text);
    if (find(delta, "tool_calls") == nullptr) continue;
    const Json call = at(delta, "tool_calls", 0);
    CHECK(at(call, "index") == 0);
    if (find(call, "id") != nullptr) {
      ++announced;
      CHECK(at(call, "type") == "function");
      CHECK(dump_json(at(call, "function")) == R"({"name":"weather","arguments":""})");
      CHECK(arguments.empty());
    } else {
      CHECK(find(at(call, "function"), "name") == nullptr);
      arguments += text_at(at(call, "function", "arguments"));
    }
  }
  CHECK(content == "Hi");
  CHECK(announced == 1);
  CHECK(arguments == R"({"city": "Bonn", "days": 2})");
  CHECK(dump_json(chunks.back()) ==
        R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"})");
}

TEST_CASE("without tools, or with tool_choice none, a marker is text") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  for (const std::string& fields :
       {std::string(), kForecastTools + std::string(R"(,"tool_choice":"none")")}) {
    const Json choice = qwen.choice("<think>a</think>" + kHermesCall, fields);
    CHECK(at(choice, "message", "content") == Json(kHermesCall));
    CHECK(at(choice, "message", "reasoning_content") == "a");
    CHECK(at(choice, "finish_reason") == "stop");
  }
}

TEST_CASE("a truncated answer has the reason length, with the part of its call so far") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const Json choice = qwen.choice(kHermesCall, std::string(kForecastTools) + R"(,"max_tokens":70)");
  CHECK(at(choice, "finish_reason") == "length");
  CHECK(at(choice, "message", "tool_calls", 0, "function", "arguments") ==
        R"({"city": "Bonn", "days": )");
}

TEST_CASE("a prompt that opens the reasoning makes the answer begin with it") {
  ServedTemplate deepseek(template_file("deepseek-ai-DeepSeek-V3.1.jinja"));
  const std::string says = "Hm.</think>Yes.";
  const Json thinking = deepseek.choice(says, R"(,"chat_template_kwargs":{"thinking":true})");
  CHECK(at(thinking, "message", "reasoning_content") == "Hm.");
  CHECK(at(thinking, "message", "content") == "Yes.");
  CHECK(at(deepseek.choice("Yes.", ""), "message", "content") == "Yes.");
}

TEST_CASE("markers that are special tokens count as their text, other special tokens do not") {
  ServedTemplate oss(template_file("openai-gpt-oss-120b.jinja"));
  oss.server.model->folder().tokenizer = std::make_shared<MarkerTokenizer>(std::vector<std::string>{
      "<|channel|>", "<|message|>", "<|end|>", "<|start|>", "<|call|>", "<|endofprompt|>"});
  RawClient client(oss.server.port());
  client.send(Served::post_text("/v1/chat/completions", ServedTemplate::body(kForecastTools)));
  const FakeModel::Running running = oss.server.model->request(0);
  const auto marker = [&](int32_t index) { running.token(258 + index); };
  marker(0);
  FakeModel::say(running, "analysis");
  marker(1);
  FakeModel::say(running, "Hm.");
  marker(5);  // meaningless here
  marker(2);
  marker(3);
  FakeModel::say(running, "assistant");
  marker(0);
  FakeModel::say(running, "commentary to=functions.weather json");
  marker(1);
  FakeModel::say(running, "{\"city\": \"Bonn\"}");
  marker(4);
  running.end(FinishReason::kStop);
  const Json message = at(Served::parse(client.read_to_end()).json(), "choices", 0, "message");
  CHECK(at(message, "reasoning_content") == "Hm.");
  CHECK(at(message, "tool_calls", 0, "function", "name") == "weather");
  CHECK(at(message, "tool_calls", 0, "function", "arguments") == R"({"city": "Bonn"})");
}

TEST_CASE("ids have the form that the family's templates take") {
  ServedTemplate mistral(template_file("mistral-common-v13.jinja"));
  const std::string says = R"([TOOL_CALLS]weather[ARGS]{"city": "Bonn"})";
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    const Json choice = mistral.choice(says, std::string(kForecastTools) + R"(,"seed":7)");
    const std::string id = text_at(at(choice, "message", "tool_calls", 0, "id"));
    CHECK(id.size() == 9);
    CHECK(std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c) != 0; }));
    ids.insert(id);
  }
  CHECK(ids.size() == 3);  // even with the same seed: they share a conversation

  ServedTemplate kimi(
      "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<|tool_calls_section_begin|>' }}");
  const Json choice = kimi.choice(
      "<|tool_calls_section_begin|><|tool_call_begin|>weather<|tool_call_argument_begin|>{}"
      "<|tool_call_end|><|tool_calls_section_end|>",
      kForecastTools,
      R"(,{"role":"assistant","content":"","tool_calls":[{"id":"functions.weather:0",)"
      R"("function":{"name":"weather","arguments":"{}"}}]},)"
      R"({"role":"tool","tool_call_id":"functions.weather:0","content":"no"})");
  CHECK(at(choice, "message", "tool_calls", 0, "id") == "functions.weather:1");
}

TEST_CASE("a call that is sent back is rendered as the model wrote it") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const std::string arguments = R"({"city":"Bonn" ,"days":2})";
  const Json choice = qwen.choice(
      "<tool_call>\n{\"name\": \"weather\", \"arguments\": " + arguments + "}\n</tool_call>",
      kForecastTools);
  const Json call = at(choice, "message", "tool_calls", 0);
  const auto prompt_of = [&](const std::string& id) {
    const Json back = JsonObject{
        {"role", "assistant"},
        {"content", nullptr},
        {"tool_calls",
         JsonArray{JsonObject{
             {"id", id},
             {"function",
              JsonObject{{"name", "weather"}, {"arguments", R"({"city":"Bonn","days":2})"}}}}}}};
    const size_t index = qwen.server.model->request_count();
    qwen.choice("ok", kForecastTools,
                "," + dump_json(back) + R"(,{"role":"tool","tool_call_id":"x","content":"no"})");
    const auto ids = qwen.server.model->request(index).request.prompt;
    return ByteTokenizer().decode(ids).value();
  };
  const std::string written = "\"arguments\": " + arguments + "}\n</tool_call>";
  CHECK(prompt_of(text_at(at(call, "id"))).find(written) != std::string::npos);
  CHECK(prompt_of("call_other").find(written) == std::string::npos);
}

TEST_CASE("tokens of the reasoning are counted separately") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  qwen.server.model->says("<think>\nHm.\n</think>\n\nYes");
  const Json usage =
      at(qwen.server.post("/v1/chat/completions", ServedTemplate::body("")).json(), "usage");
  CHECK(at(usage, "completion_tokens_details", "reasoning_tokens") == 13);
  CHECK(at(usage, "completion_tokens") == 25);
}

TEST_CASE("each of several choices has its own parser") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  qwen.server.model->says(kHermesCall);
  const Json answer = qwen.server
                          .post("/v1/chat/completions",
                                ServedTemplate::body(std::string(kForecastTools) + R"(,"n":2)"))
                          .json();
  CHECK(at(answer, "choices", 0, "message", "tool_calls", 0, "id") !=
        at(answer, "choices", 1, "message", "tool_calls", 0, "id"));
}

TEST_CASE("a continued answer continues as text") {
  ServedTemplate qwen(template_file("Qwen-Qwen3-0.6B.jinja"));
  const Json choice = qwen.choice("\n\n<think> is a tag", R"(,"continue_final_message":true)",
                                  R"(,{"role":"assistant","content":"This:"})");
  CHECK(at(choice, "message", "content") == "\n\n<think> is a tag");
}

TEST_CASE("for a template without a known format calls are parsed as JSON") {
  ServedTemplate plain("{% for m in messages %}{{ m.content }}{% endfor %}");
  const std::string says = R"({"name": "weather", "arguments": {"city": "Bonn"}})";
  CHECK(at(plain.choice(says, kForecastTools), "finish_reason") == "tool_calls");
  CHECK(at(plain.choice(says, ""), "message", "content") == Json(says));
  CHECK(at(plain.choice("\n\nHi", ""), "message", "content") == "\n\nHi");
}

}  // namespace lockstep

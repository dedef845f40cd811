// The constraint of an answer (chat/constraints/answer_constraint.h), compiled: what a model can
// write under it in each family's format.
#include "chat/constraints/answer_constraint.h"

#include <fmt/core.h>

#include <set>

#include "chat/recorded_outputs.h"
#include "grammar/constraint.h"
#include "grammar/grammar_checks.h"

namespace lockstep {
namespace {

// Every byte is a token and there are no others, so markers are made of letters.
class Bytes final : public Tokenizer {
 public:
  int vocab_size() const override { return 257; }
  std::optional<int32_t> bos_id() const override { return std::nullopt; }
  std::vector<int32_t> encode(std::string_view text, EncodeOptions) const override {
    std::vector<int32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
    return ids;
  }
  Result<std::string> decode(std::span<const int32_t> ids) const override {
    std::string text;
    for (const int32_t id : ids) text += token_bytes(id);
    return text;
  }
  std::string token_bytes(int32_t id) const override {
    return id < 256 ? std::string(1, static_cast<char>(id)) : std::string();
  }
  bool is_special(int32_t id) const override { return id == 256; }
  bool strips_leading_space() const override { return false; }
};

Result<Compiled> compiled_answer(const AnswerOptions& options) {
  return compile_constraint(TRY(answer_constraint(options)), Bytes());
}

Compiled answer(const AnswerOptions& options) {
  return grammar_of(compiled_answer(options));
}

const Json& tools() {
  static const Json list = recorded_file("tools");
  return list;
}

AnswerOptions options_of(std::string_view family, CallChoice calls) {
  AnswerOptions options;
  options.format = find_tool_format(family);
  REQUIRE(options.format != nullptr);
  options.tools = &tools();
  options.calls = calls;
  return options;
}

constexpr std::string_view kWeather = R"({"name": "get_weather", "arguments": {"city": "Bonn"}})";
std::string hermes_call(std::string_view call = kWeather) {
  return "<tool_call>\n" + std::string(call) + "\n</tool_call>";
}

}  // namespace

TEST_CASE("auto allows recorded outputs, except broken ones") {
  // Truncated, broken, with unknown tools, or what only parsers accept: keys in another order than
  // the schema's, spaces, missing markers, texts that look like the end of a call.
  const std::set<std::string> known{"truncated_inside_arguments",
                                    "truncated_inside_number",
                                    "truncated_in_second_call",
                                    "missing_close_tag_at_stop",
                                    "broken_json",
                                    "unknown_function",
                                    "json_answer_not_a_tool",
                                    "big_integer",
                                    "whitespace_between_tokens",
                                    "call_without_section_end",
                                    "no_args_token",
                                    "tag_in_string"};
  int allowed = 0;
  int refused = 0;
  for (const std::string_view family : kRecordedFormats) {
    const Json recorded = recorded_file(family);
    for (const Json& one : recorded.get_array()) {
      AnswerOptions options = options_of(family, CallChoice::kAuto);
      const Json* open = find(one, "prompt_ends_with_open_think");
      if (open != nullptr && *open == Json(true)) options.reasoning = ReasoningState::kOpen;
      const std::string name = text_of(*find(one, "name"));
      CAPTURE(family);
      CAPTURE(name);
      if (accepts(answer(options), text_of(*find(one, "raw")))) {
        ++allowed;
      } else {
        CHECK(known.contains(name));
        ++refused;
      }
    }
  }
  MESSAGE(allowed, " recorded outputs are allowed, ", refused, " are not");
  CHECK(allowed > 150);
}

TEST_CASE("auto is text up to a marker, and then a call of a tool with arguments that fit") {
  const Compiled grammar = answer(options_of("hermes", CallChoice::kAuto));
  CHECK(accepts(grammar, ""));
  CHECK(accepts(grammar, "Hello <tool"));
  CHECK(accepts(grammar, "Let me look.\n" + hermes_call()));
  CHECK(accepts(grammar, hermes_call() + "\n" + hermes_call() + " Done."));
  CHECK_FALSE(accepts(grammar, "See <tool_call> and"));
  CHECK_FALSE(accepts(grammar, hermes_call(R"({"name": "unknown", "arguments": {}})")));
  CHECK_FALSE(accepts(grammar, hermes_call(R"({"name": "get_weather", "arguments": {}})")));
}

TEST_CASE("required allows only calls, and only of the given tools") {
  const Compiled grammar = answer(options_of("hermes", CallChoice::kRequired));
  CHECK(accepts(grammar, hermes_call()));
  CHECK(accepts(grammar, hermes_call() + "\n" + hermes_call()));
  CHECK(accepts(grammar, "<think>Hm.</think>\n\n" + hermes_call()));
  CHECK_FALSE(accepts(grammar, ""));
  CHECK_FALSE(accepts(grammar, "Hello"));
  CHECK_FALSE(accepts(grammar, "<think>Hm."));
  CHECK_FALSE(accepts(grammar, hermes_call() + "Hello"));
}

TEST_CASE("a single tool can be required, and a single call") {
  AnswerOptions options = options_of("hermes", CallChoice::kRequired);
  Json one = JsonArray{tools().get_array()[4]};
  options.tools = &one;
  options.is_parallel = false;
  const Compiled grammar = answer(options);
  const std::string now = hermes_call(R"({"name": "now", "arguments": {}})");
  CHECK(accepts(grammar, now));
  CHECK_FALSE(accepts(grammar, now + "\n" + now));
  CHECK_FALSE(accepts(grammar, hermes_call()));
  AnswerOptions automatic = options_of("hermes", CallChoice::kAuto);
  automatic.is_parallel = false;
  CHECK(accepts(answer(automatic), "a" + hermes_call() + "b"));
  CHECK_FALSE(accepts(answer(automatic), hermes_call() + hermes_call()));
}

TEST_CASE("without calls no call marker can be written") {
  const Compiled grammar = answer(options_of("kimi_k2", CallChoice::kNone));
  CHECK(accepts(grammar, "<think>Hm.</think>Hello"));
  CHECK_FALSE(accepts(grammar, "<|tool_calls_section_begin|>"));
  CHECK_FALSE(accepts(grammar, "a <|tool_call_begin|>"));
}

TEST_CASE("a reply that begins with a brace is a call of Llama 3, not text") {
  const Compiled grammar = answer(options_of("llama3", CallChoice::kAuto));
  CHECK(accepts(grammar, R"({"name": "now", "parameters": {}})"));
  CHECK(accepts(grammar, R"({"type": "function", "name": "now", "parameters": {}})"));
  CHECK(accepts(grammar, R"(<|python_tag|>{"name": "now", "parameters": {}})"));
  CHECK(accepts(grammar, "Braces: {}"));
  CHECK_FALSE(accepts(grammar, "{}"));
  CHECK_FALSE(accepts(grammar, "  { \"a\": 1}"));
  const Compiled generic = answer(options_of("generic", CallChoice::kAuto));
  CHECK(accepts(generic, R"([{"name": "now", "arguments": {}}])"));
  CHECK(accepts(generic, "[1] says so"));
  CHECK_FALSE(accepts(generic, "[{\"a\": 1}]"));
  CHECK(accepts(generic, "```\nls\n```"));
  CHECK_FALSE(accepts(generic, "```json\n{\"a\": 1}\n```"));
}

TEST_CASE("reasoning comes first, is open if the prompt has opened it, and comes only once") {
  AnswerOptions options = options_of("hermes", CallChoice::kRequired);
  options.reasoning = ReasoningState::kOpen;
  CHECK(accepts(answer(options), "Hm.</think>" + hermes_call()));
  CHECK_FALSE(accepts(answer(options), hermes_call()));
  options.reasoning = ReasoningState::kClosed;
  CHECK(accepts(answer(options), hermes_call()));
  CHECK_FALSE(accepts(answer(options), "<think>Hm.</think>" + hermes_call()));
  const Compiled automatic = answer(options_of("hermes", CallChoice::kAuto));
  CHECK(accepts(automatic, "<think>Hm. <tool_call>"));  // it may stop anywhere
  CHECK(accepts(automatic, "<think>Hm.</think>Yes."));
}

TEST_CASE("Kimi may call inside its reasoning") {
  AnswerOptions options = options_of("kimi_k2", CallChoice::kRequired);
  options.reasoning = ReasoningState::kOpen;
  const std::string call =
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:12<|tool_call_argument_begin|>"
      "{}<|tool_call_end|><|tool_calls_section_end|>";
  CHECK(accepts(answer(options), "Hm." + call));
  CHECK(accepts(answer(options), "Hm.</think>" + call));
  CHECK_FALSE(accepts(answer(options), "Hm."));
}

TEST_CASE("an answer in a given form contains nothing else, or is calls") {
  AnswerOptions options = options_of("hermes", CallChoice::kAuto);
  options.answer =
      parse_json(R"({"json_schema":{"type":"integer"},"of":"response_format"})").value();
  CHECK(accepts(answer(options), "12"));
  CHECK(accepts(answer(options), "<think>Hm.</think>\n\n12"));
  CHECK(accepts(answer(options), hermes_call()));
  CHECK_FALSE(accepts(answer(options), "twelve"));
  CHECK_FALSE(accepts(answer(options), "12" + hermes_call()));
  options.tools = nullptr;
  CHECK_FALSE(accepts(answer(options), hermes_call()));
  options.format = nullptr;
  CHECK(accepts(answer(options), "12"));
  CHECK_FALSE(accepts(answer(options), "<think>Hm.</think>12"));
  AnswerOptions harmony = options_of("gpt_oss", CallChoice::kAuto);
  harmony.answer = options.answer;
  CHECK(accepts(answer(harmony),
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final"
                "<|message|>12<|return|>"));
  CHECK_FALSE(accepts(answer(harmony), "<|channel|>final<|message|>twelve"));
}

TEST_CASE("text in tags is raw, and text that would be read as another type is refused") {
  const Json list = parse_json(R"([{"function":{"name":"f","parameters":{"type":"object",
    "properties":{"a":{"type":["string","null"]},"b":{"type":"string"},"c":{"type":"integer"},
    "d":{"type":"string","enum":["x","y"]},"e":{"type":["number","string"]},
    "f":{"type":["integer","string"]}}}}}])")
                        .value();
  AnswerOptions options = options_of("qwen3_coder", CallChoice::kRequired);
  options.tools = &list;
  const Compiled grammar = answer(options);
  const auto tags = [](std::string_view tags) {
    std::string text = "<tool_call>\n<function=f>\n";
    while (!tags.empty()) {
      const std::string_view pair = tags.substr(0, tags.find(';'));
      tags.remove_prefix(std::min(tags.size(), pair.size() + 1));
      text += fmt::format("<parameter={}>\n{}\n</parameter>\n", pair.substr(0, 1), pair.substr(2));
    }
    return text + "</function>\n</tool_call>";
  };
  CHECK(accepts(grammar, tags("")));
  CHECK(accepts(grammar, tags("a=it is \"so\" < or > so;b=null;c=-7;d=y")));
  CHECK(accepts(grammar, tags("a=null")));
  CHECK(accepts(grammar, tags("a=2024-01-01")));
  CHECK(accepts(grammar, tags("b=")));
  CHECK_FALSE(accepts(grammar, tags("a=None")));  // would be read as null
  CHECK_FALSE(accepts(grammar, tags("b=a</parameter>")));
  // Here the reader would look whether the value ends.
  CHECK_FALSE(accepts(grammar, tags("b=a</function>")));
  CHECK_FALSE(accepts(grammar, tags("b=a<parameter=c>")));
  for (const char* number : {"7", "-0.5", "1e-09", "1E5", "1.5e+21"}) {
    CHECK(accepts(grammar, tags("e=" + std::string(number))));
    // Read as a text where an integer is wanted, which a pattern of texts cannot promise.
    CHECK(accepts(grammar, tags("f=" + std::string(number))) == (std::string_view(number) == "7"));
  }
  CHECK_FALSE(accepts(grammar, tags("c=seven")));
  CHECK_FALSE(accepts(grammar, tags("d=z")));
  CHECK_FALSE(accepts(grammar, tags("z=1")));
}

TEST_CASE("names and keys that a format cannot hold are refused with a sentence") {
  const auto refusal = [](std::string_view family, const char* name, const char* parameters) {
    const Json list = JsonArray{JsonObject{
        {"function", JsonObject{{"name", name}, {"parameters", parse_json(parameters).value()}}}}};
    AnswerOptions options = options_of(family, CallChoice::kRequired);
    options.tools = &list;
    return error_of(compiled_answer(options));
  };
  CHECK(refusal("hermes", "a \"b\"", "{}") == "");
  CHECK(refusal("mistral_v11", "a{b", "{}").starts_with("the tool name \"a{b\" cannot be written"));
  CHECK(refusal("kimi_k2", "a{b", "{}").starts_with("the tool name \"a{b\" cannot be written"));
  CHECK(refusal("gpt_oss", "a b", "{}").starts_with("the tool name \"a b\""));
  CHECK(refusal("qwen3_coder", "f", R"({"properties":{"a>b":{}}})") == "");
  CHECK(refusal("qwen3_coder", "f", R"({"properties":{"a>b":{}},"required":["a>b"]})") ==
        "the parameters of \"f\": the model's way to write calls cannot hold the required key "
        "\"a>b\"");
}

TEST_CASE("annotations of schemas are dropped") {
  const Json list = parse_json(R"([{"function":{"name":"f","parameters":{"description":"LONG",
    "properties":{"description":{"type":"integer","title":"LONG"}},"required":["description"]}}}])")
                        .value();
  AnswerOptions options = options_of("hermes", CallChoice::kRequired);
  options.tools = &list;
  const auto spec = answer_constraint(options);
  REQUIRE(spec.ok());
  CHECK(spec.value().find("LONG") == std::string::npos);
  CHECK(accepts(answer(options), hermes_call(R"({"name":"f","arguments":{"description":1}})")));
}

}  // namespace lockstep

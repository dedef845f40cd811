// The constraint of calls with bare keys, as Gemma 4 writes them (grammar/schema/bare_notation.h),
// and that the parser reads what it allows.
#include <fmt/core.h>

#include "chat/constraints/answer_constraint.h"
#include "chat/recorded_outputs.h"
#include "grammar/constraint.h"
#include "grammar/grammar_checks.h"

namespace lockstep {
namespace {

const Tokenizer& letters() {
  static const auto tokenizer = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/models/stories260K");
  REQUIRE(tokenizer.ok());
  return *tokenizer.value();
}

// A function "f" with these properties.
Json function_with(std::string_view properties, std::string_view more = "") {
  return parse_json(fmt::format(R"([{{"function":{{"name":"f","strict":true,"parameters":
    {{"type":"object","properties":{}{}}}}}}}])",
                                properties, more))
      .value();
}

class Answers {
 public:
  explicit Answers(Json tools, CallChoice calls = CallChoice::kRequired, bool is_parallel = true)
      : tools_(std::move(tools)) {
    options_.format = find_tool_format("gemma4");
    options_.tools = &tools_;
    options_.calls = calls;
    options_.is_parallel = is_parallel;
    const auto spec = answer_constraint(options_);
    REQUIRE(spec.ok());
    const auto compiled = compile_constraint(spec.value(), letters());
    if (!compiled.ok()) error_ = compiled.error().message;
    if (compiled.ok()) grammar_ = compiled.value();
  }
  Answers(const Answers&) = delete;

  const std::string& error() const { return error_; }
  bool allow(std::string_view text) const { return accepts(grammar_, text); }
  bool allow_call(std::string_view arguments) const { return allow(call(arguments)); }
  // The parser's arguments of an allowed call.
  std::string read(std::string_view arguments) const {
    CHECK_MESSAGE(allow_call(arguments), arguments);
    OutputParser::Options reading;
    reading.format = options_.format;
    reading.tools = std::make_shared<const ToolSet>(tools_);
    const Parsed parsed = parse_chunks(reading, bytes_of(call(arguments)), false);
    REQUIRE(parsed.message.calls.size() == 1);
    return parsed.message.calls[0].arguments;
  }

  static std::string call(std::string_view arguments) {
    return fmt::format("<|tool_call>call:f{}<tool_call|>", arguments);
  }

 private:
  Json tools_;
  AnswerOptions options_;
  Compiled grammar_;
  std::string error_;
};

}  // namespace

TEST_CASE("values of bare keys have the types of the schema") {
  const Answers answers(function_with(
      R"({"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":["number","null"]},
          "d":{"type":"boolean"},"e":{"enum":["x",7]},"f":{"type":["string","integer"]}})"));
  CHECK(answers.read("{}") == "{}");
  CHECK(answers.read(R"({a:<|"|>it's "so", {or} [not]:<|"|>,b:-7})") ==
        R"({"a": "it's \"so\", {or} [not]:", "b": -7})");
  CHECK(answers.read(R"({c:1.5e-07,d:true,e:<|"|>x<|"|>,f:12})") ==
        R"({"c": 1.5e-07, "d": true, "e": "x", "f": 12})");
  CHECK(answers.read(R"({c:null,e:7,f:<|"|>12<|"|>})") == R"({"c": null, "e": 7, "f": "12"})");
  CHECK_FALSE(answers.allow_call("{a:1}"));
  CHECK_FALSE(answers.allow_call(R"({b:<|"|>1<|"|>})"));
  CHECK_FALSE(answers.allow_call(R"({"b":1})"));
  CHECK_FALSE(answers.allow_call("{d:True}"));
  CHECK_FALSE(answers.allow_call("{b:1,}"));
  CHECK_FALSE(answers.allow_call("{z:1}"));
  CHECK_FALSE(answers.allow_call(R"({a:<|"|>a<tool_call|>b<|"|>})"));
}

TEST_CASE("objects and lists inside of arguments are in the same notation") {
  const Answers answers(function_with(
      R"({"list":{"type":"array","items":{"type":"array","items":{"type":"string"}}},
          "object":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"object"}},
                    "required":["x"]}})"));
  CHECK(answers.read(R"({list:[[<|"|>a<|"|>,<|"|><|"|>],[]],object:{x:1,y:{z:[{n:null}]}}})") ==
        R"({"list": [["a", ""], []], "object": {"x": 1, "y": {"z": [{"n": null}]}}})");
  CHECK(answers.read(R"({object:{x:0,y:{<|"|>a:b<|"|>:1,<|"|><|"|>:2,c d:3}}})") ==
        R"({"object": {"x": 0, "y": {"a:b": 1, "": 2, "c d": 3}}})");
  CHECK_FALSE(answers.allow_call("{object:{}}"));
  CHECK_FALSE(answers.allow_call(R"({list:[<|"|>a<|"|>]})"));
}

TEST_CASE("bare keys come in the order of the template, those that it cannot show are quoted") {
  const Answers answers(function_with(
      R"({"path":{"type":"integer"},"Content":{"type":"integer"},"a b":{"type":"integer"},
          "a:b":{"type":"integer"}," ":{"type":"integer"}})",
      R"(,"required":["path"])"));
  CHECK(answers.read(R"({<|"|> <|"|>:0,a b:1,<|"|>a:b<|"|>:2,Content:3,path:4})") ==
        R"({" ": 0, "a b": 1, "a:b": 2, "Content": 3, "path": 4})");
  CHECK_FALSE(answers.allow_call("{path:4,Content:3}"));
  CHECK_FALSE(answers.allow_call("{a:b:2,path:4}"));
  const Answers unwritable(
      function_with(R"({"<|\"|>":{"type":"integer"}})", R"(,"required":["<|\"|>"])"));
  CHECK(unwritable.error() ==
        "the parameters of \"f\": the model's way to write calls cannot hold the required key "
        "\"<|\"|>\"");
}

TEST_CASE("texts between markers obey patterns and lengths") {
  const Answers answers(function_with(
      R"({"day":{"type":"string","pattern":"^[0-9]+:[0-9]+$"},
          "short":{"type":"string","maxLength":3}})"));
  CHECK(answers.read(R"({day:<|"|>12:30<|"|>,short:<|"|>日本語<|"|>})") ==
        R"({"day": "12:30", "short": "日本語"})");
  CHECK_FALSE(answers.allow_call(R"({day:<|"|>noon<|"|>})"));
  CHECK_FALSE(answers.allow_call(R"({short:<|"|>four<|"|>})"));
}

TEST_CASE("calls with bare keys follow each other, and one may be all") {
  const Json tools = function_with(R"({"a":{"type":"integer"}})");
  const std::string call = Answers::call("{a:1}");
  const Answers required(tools);
  CHECK(required.allow("<|channel>thought\nHm.\n<channel|>" + call + "\n" + call));
  CHECK(required.allow("<|channel>thought\nHm." + call));  // which ends the thought
  CHECK_FALSE(required.allow(""));
  CHECK_FALSE(required.allow("Hello" + call));
  CHECK_FALSE(required.allow("call:f{a:1}"));
  const Answers single(tools, CallChoice::kRequired, false);
  CHECK(single.allow(call));
  CHECK_FALSE(single.allow(call + call));
}

TEST_CASE("with auto a text may not begin as a call does, unless it is one") {
  const Answers answers(function_with(R"({"a":{"type":"integer"}})"), CallChoice::kAuto);
  const std::string call = Answers::call("{a:1}");
  CHECK(answers.allow("Hello " + call + call + " Done."));
  CHECK(answers.allow("<|channel>thought\nHm.\n<channel|>Hello"));
  CHECK(answers.allow("<|channel>thought\n<channel|>call:f{a:1}"));
  CHECK(answers.allow("call:f{a:1}<tool_call|>Done." + call));
  CHECK(answers.allow("call: f, please"));
  CHECK(answers.allow("I call:f{b}"));
  CHECK(answers.allow("call:g{b}"));
  CHECK_FALSE(answers.allow("call:f{b}"));
  CHECK_FALSE(answers.allow(" call: f (b)"));
  CHECK_FALSE(answers.allow("Hello <|tool_call>"));
  CHECK_FALSE(answers.allow("<|tool_call>call:g{}<tool_call|>"));
  CHECK_FALSE(answers.allow("<|tool_call>call:f{a:1}"));
}

}  // namespace lockstep

// How a chat request constrains its answer, up to the constraint that is sent to the workers.
#include "server/chat/chat_constraint.h"

#include "grammar/automaton/matcher.h"
#include "grammar/constraint.h"
#include "server/served_template.h"
#include "support/text.h"

namespace lockstep {
namespace {

const char* const kTwoTools =
    R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object",)"
    R"("properties":{"a":{"type":"integer"}},"required":["a"]}}},)"
    R"({"type":"function","function":{"name":"g"}}])";

// A server with Qwen 3's template.
class ServedQwen3 {
 public:
  ServedQwen3() {
    auto format = ChatFormat::parse({template_file("Qwen-Qwen3-0.6B.jinja"), "", {}});
    REQUIRE(format.ok());
    served.model->folder().chat_format = format.value();
    served.model->says("x");
  }

  Answer ask(const std::string& fields) {
    return served.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}])" +
                                                   (fields.empty() ? "" : "," + fields) + "}");
  }
  std::string constraint(const std::string& fields) {
    const size_t index = served.model->request_count();
    const Answer answer = ask(fields);
    REQUIRE_MESSAGE(answer.status == 200, answer.body);
    return served.model->request(index).request.constraint;
  }
  bool allows(const std::string& fields, std::string_view text) {
    const std::string spec = constraint(fields);
    REQUIRE(!spec.empty());
    const auto grammar = compile_constraint(spec, ByteTokenizer());
    REQUIRE_MESSAGE(grammar.ok(), spec);
    Matcher matcher(grammar.value());
    return matcher.accept_bytes(text) && matcher.may_end();
  }
  // "400 param": the status and the wrong parameter.
  std::string refusal(const std::string& fields) {
    const Answer answer = ask(fields);
    if (answer.status == 200) return "200";
    return std::to_string(answer.status) + " " + text_at(at(answer.json(), "error", "param")) +
           ": " + text_at(at(answer.json(), "error", "message"));
  }

  Served served;
};

std::string call(std::string_view name, std::string_view arguments) {
  return fmt::format("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>", name,
                     arguments);
}

std::string with(const std::string& fields) {
  return std::string(kTwoTools) + "," + fields;
}

}  // namespace

TEST_CASE("a plain request is not constrained") {
  ServedQwen3 qwen;
  CHECK(qwen.constraint("").empty());
  CHECK(qwen.constraint(R"("response_format":{"type":"text"},"tool_choice":"none")").empty());
}

TEST_CASE("with tools a call is constrained once it begins") {
  ServedQwen3 qwen;
  CHECK(qwen.allows(kTwoTools, "Hello."));
  CHECK(qwen.allows(kTwoTools, "Hello. " + call("f", R"({"a": 1})") + call("g", "{}")));
  CHECK_FALSE(qwen.allows(kTwoTools, call("f", R"({"a": "1"})")));
  CHECK_FALSE(
      qwen.allows(with(R"("parallel_tool_calls":false)"), call("g", "{}") + call("g", "{}")));
}

TEST_CASE("tool_choice can require a call, one tool, or one of several") {
  ServedQwen3 qwen;
  const std::string required = with(R"("tool_choice":"required")");
  CHECK(qwen.allows(required, call("g", "{}")));
  CHECK_FALSE(qwen.allows(required, "Hello."));
  const std::string named = with(R"("tool_choice":{"type":"function","function":{"name":"f"}})");
  CHECK(qwen.allows(named, call("f", R"({"a": 1})")));
  CHECK_FALSE(qwen.allows(named, call("g", "{}")));
  const std::string some = R"("tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":)";
  const std::string only_g = R"(,"tools":[{"type":"function","function":{"name":"g"}}]}})";
  CHECK(qwen.allows(with(some + "\"auto\"" + only_g), "Hello." + call("g", "{}")));
  CHECK_FALSE(qwen.allows(with(some + "\"auto\"" + only_g), call("f", R"({"a": 1})")));
  CHECK_FALSE(qwen.allows(with(some + "\"required\"" + only_g), "Hello."));
}

TEST_CASE("tool_choice none keeps markers of calls out of the answer") {
  ServedQwen3 qwen;
  const std::string none = with(R"("tool_choice":"none")");
  CHECK(qwen.allows(none, "Hello."));
  CHECK_FALSE(qwen.allows(none, "<tool_call>"));
}

TEST_CASE("invalid tool choices are refused by name") {
  ServedQwen3 qwen;
  CHECK(qwen.refusal(R"("tool_choice":"required")").starts_with("400 tool_choice:"));
  CHECK(qwen.refusal(with(R"("tool_choice":"sometimes")")).starts_with("400 tool_choice:"));
  CHECK(qwen.refusal(with(R"("tool_choice":{"type":"function","function":{"name":"h"}})")) ==
        "400 tool_choice: \"tool_choice\" names \"h\", which is not one of the \"tools\"");
  CHECK(qwen.refusal(with(R"("tool_choice":{"type":"allowed_tools"})"))
            .starts_with("400 tool_choice:"));
}

TEST_CASE("response_format makes the answer JSON, after the reasoning") {
  ServedQwen3 qwen;
  const std::string object = R"("response_format":{"type":"json_object"})";
  CHECK(qwen.allows(object, "{\"a\": [1]}"));
  CHECK(qwen.allows(object, "<think>\nHm.\n</think>\n\n{}"));
  CHECK_FALSE(qwen.allows(object, "Hello."));
  const std::string schema =
      R"("response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,)"
      R"("schema":{"type":"integer","description":"A number."}}})";
  CHECK(qwen.allows(schema, "7"));
  CHECK_FALSE(qwen.allows(schema, "{}"));
  CHECK_FALSE(contains(qwen.constraint(schema), "A number."));
  CHECK(qwen.allows(with(schema), call("g", "{}")));
  CHECK(qwen.allows(with(schema), "7"));
}

TEST_CASE("other servers' fields for the form of an answer are accepted") {
  ServedQwen3 qwen;
  CHECK(qwen.allows(R"("json_schema":{"type":"integer"})", "7"));
  CHECK(qwen.allows(R"("grammar":"root ::= \"yes\" | \"no\"")", "no"));
  CHECK(qwen.allows(R"("guided_json":"{\"type\":\"null\"}")", "null"));
  CHECK(qwen.allows(R"("guided_regex":"[ab]+")", "ab"));
  CHECK_FALSE(qwen.allows(R"("guided_choice":["red","blue"])", "green"));
  CHECK(qwen.allows(R"("structured_outputs":{"choice":["red","blue"]})", "blue"));
  CHECK(qwen.refusal(R"("grammar":"root ::= \"a\"","guided_regex":"a")")
            .starts_with("400 response_format:"));
  CHECK(qwen.refusal(R"("guided_regex":"(")").starts_with("400 response_format:"));
  CHECK(qwen.refusal(R"("guided_choice":[])").starts_with("400 guided_choice:"));
}

TEST_CASE("unenforceable keywords are refused if strict, and otherwise named in a header") {
  ServedQwen3 qwen;
  const auto format = [](const char* strict) {
    return std::string(R"("response_format":{"type":"json_schema","json_schema":{"name":"n",)") +
           R"("strict":)" + strict + R"(,"schema":{"type":"array","uniqueItems":true}}})";
  };
  CHECK(qwen.refusal(format("true")) ==
        "400 response_format: response_format: the keyword \"uniqueItems\" cannot be enforced "
        "while decoding");
  const Answer warned = qwen.ask(format("false"));
  CHECK(warned.status == 200);
  CHECK(warned.has_header(
      "x-lockstep-warnings: response_format: the keyword \"uniqueItems\" is not enforced"));
  const std::string tool =
      R"("tools":[{"type":"function","function":{"name":"f","strict":true,)"
      R"("parameters":{"properties":{"a":{"type":"array","uniqueItems":true}}}}}])";
  CHECK(qwen.refusal(tool) ==
        "400 tools: the parameters of \"f\": the keyword \"uniqueItems\" cannot be enforced while "
        "decoding");
}

TEST_CASE("a call that cannot be constrained is free, and a header says so") {
  ServedQwen3 qwen;
  const std::string nothing =
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"$ref":"#/nowhere"}}}])";
  const Answer answer = qwen.ask(nothing);
  CHECK(answer.status == 200);
  CHECK(answer.has_header("x-lockstep-warnings: calls are not constrained: the parameters of"));
  CHECK(qwen.constraint(nothing).empty());
  CHECK(qwen.refusal(nothing + R"(,"tool_choice":"required")").starts_with("400 tools:"));
}

}  // namespace lockstep

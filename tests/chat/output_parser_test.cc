// Cases that no recorded output shows: broken calls, values without types, calls in Python, limits.
#include "chat/calls/output_parser.h"

#include "chat/calls/call_reader.h"
#include "chat/recorded_outputs.h"

namespace lockstep {
namespace {

using Kind = OutputDelta::Kind;

std::string tell(std::string_view format, std::string_view raw, bool is_truncated = false) {
  const Parsed parsed = parse_whole(format, raw, is_truncated);
  // The result is the same however the output is cut.
  OutputParser::Options options;
  options.format = find_tool_format(format);
  options.tools = recorded_tools();
  const Parsed by_bytes = parse_chunks(options, bytes_of(raw), is_truncated);
  CHECK(told(by_bytes.message) == told(parsed.message));
  CHECK(by_bytes.finish_reason == parsed.finish_reason);
  for (const auto& some : parsed.deltas) {
    for (const OutputDelta& delta : some) CHECK(is_valid_utf8(delta.text));
  }
  return told(parsed.message);
}

}  // namespace

TEST_CASE("text that only looks like a call is all content") {
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"hermes", "a <tool_call> is a tag </tool_call> b"},
      {"hermes", "<tool_call>\n{\"name\": 5, \"arguments\": {}}\n</tool_call>"},
      {"hermes", "<tool_call>\n{\"arguments\": {}}\n</tool_call>"},
      {"hermes", "<tool_call>"},
      {"qwen3_coder", "Write <function=NAME> and </function>."},
      {"qwen3_coder", "<tool_call>\nnothing\n</tool_call>"},
      {"glm45", "<tool_call>two words\n</tool_call>"},
      {"glm45", "<tool_call>now"},
      {"deepseek_v31", "<｜tool▁calls▁begin｜><｜tool▁calls▁end｜>"},
      {"deepseek_v32", "<｜DSML｜function_calls>\nand no more"},
      {"mistral_v3", "[TOOL_CALLS] a list"},
      {"mistral_v11", "[TOOL_CALLS]a name that never ends"},
      {"kimi_k2", "<|tool_calls_section_begin|>text"},
      {"llama3", "{\"name\": \"Alice\", \"parameters\": {}}"},
      {"llama3", "{\"parameters\": {}, \"name\": \"Alice\"}"},
      {"llama3", "{\"parameters\": {\"width\": 3}}"},
      {"llama3", "{\"parameters\": {\"width\": 3}, \"name\": 5}"},
      {"llama3", "{\"parameters\": {\"width\": 3}, \"unit\": \"mm\", \"name\": \"now\"}"},
      {"llama3", "{\"parameters\": {\"width\": [1}}, and so on"},
      {"llama3", "Send {\"parameters\": {}, \"name\": \"now\"} to it."},
      {"generic", "{\"arguments\": {\"width\": 3}} is what it takes"},
      {"llama3", "{\"name\": \"now\"}"},
      {"llama3", "<|python_tag|>print(1)"},
      {"llama3", "<|python_tag|>now.call(x=)"},
      {"generic", "[1, 2, 3]"},
      {"generic", "{\"answer\": 4}"},
      {"gpt_oss", "no header at all"},
      {"gpt_oss", "<|channel|>final and no more"},
      {"gpt_oss", "<|chan<|channel|>final<|message|>a"},
  };
  for (const auto& [format, raw] : kCases) {
    CAPTURE(format);
    CHECK(tell(format, raw) == "[" + std::string(raw) + "][]");
    CHECK(parse_whole(format, raw).finish_reason == "stop");
  }
}

TEST_CASE("a call that is broken after its name keeps what the model wrote") {
  CHECK(tell("hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": [1}}</tool_call>!") ==
        "[!][] now{\"a\": [1}}");
  CHECK(tell("mistral_v11", "[TOOL_CALLS]now[ARGS]nothing[TOOL_CALLS]now[ARGS]{}") ==
        "[][] nownothing now{}");
  CHECK(tell("mistral_v11", "[TOOL_CALLS]now[ARGS]é, and no JSON follows") ==
        "[][] nowé, and no JSON follows");
  CHECK(tell("qwen3_coder", "<tool_call><function=now>rubbish</function></tool_call>") ==
        "[rubbish</function></tool_call>][] now{}");
  CHECK(tell("gpt_oss", "<|channel|>commentary to=functions.now code<|message|>x = 1<|call|>") ==
        "[][] nowx = 1");
}

TEST_CASE("unambiguous mistakes are corrected") {
  // Line ends inside a string, an object as a string, null, and no arguments at all.
  CHECK(tell("hermes", "<tool_call>{\"name\": \"now\", \"arguments\": {\"a\": \"1\n\t2\"}}") ==
        "[][] now{\"a\": \"1\\n\\t2\"}");
  CHECK(tell("hermes", "<tool_call>{\"name\": \"now\", \"arguments\": \"{\\\"a\\\": 1}\"}") ==
        "[][] now{\"a\": 1}");
  CHECK(tell("hermes", "<tool_call>{\"name\": \"now\", \"arguments\": null}</tool_call>") ==
        "[][] now{}");
  CHECK(tell("hermes", "<tool_call>{\"name\": \"now\"}</tool_call>") == "[][] now{}");
  CHECK(tell("hermes", "<tool_call>{\"arguments\": {\"a\": 1}, \"name\": \"now\"}</tool_call>") ==
        "[][] now{\"a\": 1}");
  CHECK(tell("mistral_v11", "[TOOL_CALLS]now[ARGS]") == "[][] now{}");
  // The model stopped inside a value.
  CHECK(tell("qwen3_coder", "<tool_call>\n<function=get_weather>\n<parameter=city>\nBonn\n") ==
        "[][] get_weather{\"city\": \"Bonn\"}");
  CHECK(tell("glm45", "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>3") ==
        "[][] get_weather{\"days\": 3}");
}

TEST_CASE("a whole reply is a call though its arguments come before its name") {
  for (const char* format : {"llama3", "generic"}) {
    CHECK(tell(format, "{\"parameters\": {}, \"name\": \"now\"}") == "[][] now{}");
    CHECK(tell(format, "{\"arguments\": {\"city\": \"Bonn\"}, \"name\": \"get_weather\"}") ==
          "[][] get_weather{\"city\": \"Bonn\"}");
    CHECK(tell(format,
               "{\"type\": \"function\", \"parameters\": \"{\\\"days\\\": 2}\", "
               "\"name\": \"get_weather\"}") == "[][] get_weather{\"days\": 2}");
    // Cut off before the name it may be text.
    const std::string begin = "{\"parameters\": {\"days\": 2}, \"na";
    CHECK(tell(format, begin, true) == "[" + begin + "][]");
  }
}

TEST_CASE("in a header that repeats itself the last words count") {
  CHECK(tell("gpt_oss",
             "<|channel|>commentary to=assistant<|channel|>analysis<|message|>Hm.<|end|>"
             "<|start|>assistant<|channel|>final<|message|>4") == "[4][Hm.]");
  CHECK(tell("gpt_oss", "<|channel|>analysis<|channel|>final<|message|>4") == "[4][]");
  CHECK(tell("gpt_oss", "<|channel|>analysis to=assistant<|message|>Hm.") == "[][Hm.]");
  CHECK(tell("gpt_oss", "<|channel|>analysis<|channel|><|message|>Hm.") == "[][Hm.]");
  CHECK(tell("gpt_oss", "<|channel|>final to=assistant<|message|>4") == "[4][]");
  CHECK(tell("gpt_oss",
             "<|channel|>analysis to=assistant<|channel|>commentary to=functions.now "
             "<|constrain|>json<|message|>{}<|call|>") == "[][] now{}");
  CHECK(tell("gpt_oss",
             "<|channel|>commentary to=functions.now to=assistant<|channel|>analysis"
             "<|message|>Hm.") == "[][Hm.]");
}

TEST_CASE("text between and after calls is content") {
  CHECK(tell("hermes",
             "a\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n\nb\n"
             "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call> c") ==
        "[a\nb c][] now{} now{}");
  CHECK(tell("mistral_v3", "[TOOL_CALLS][{\"name\": \"now\", \"arguments\": {}}] ]") ==
        "[]][] now{}");
}

TEST_CASE("an answer that is cut off before a call's name has no call") {
  CHECK(tell("hermes", "Hi <tool_call>\n{\"na", true) == "[Hi][]");
  CHECK(tell("glm45", "<tool_call>get_wea", true) == "[][]");
  CHECK(tell("gpt_oss", "<|channel|>comm", true) == "[][]");
  CHECK(tell("hermes", "1 <tool", true) == "[1 <tool][]");  // could become anything
  CHECK(tell("llama3", "{\"name\": \"get", true) == "[{\"name\": \"get][]");
  CHECK(parse_whole("hermes", "Hi", true).finish_reason == "length");
}

TEST_CASE("calls in Python become calls with JSON") {
  CHECK(tell("llama3", "<|python_tag|>brave_search.call(query=\"a \\\"b\\\"\", n=3, on=True)") ==
        "[][] brave_search{\"query\": \"a \\\"b\\\"\", \"n\": 3, \"on\": true}");
  CHECK(tell("llama3", "<|python_tag|>now.call()") == "[][] now{}");
}

TEST_CASE("a model without a format of its own may answer with one call or a list of them") {
  CHECK(tell("generic", "{\"name\": \"now\", \"arguments\": {}}") == "[][] now{}");
  CHECK(
      tell("generic",
           " [{\"name\": \"now\", \"arguments\": {}},\n{\"name\": \"now\", \"arguments\": {}}]") ==
      "[][] now{} now{}");
  CHECK(tell("generic", "<think>a</think>{\"name\": \"now\", \"arguments\": {}}") == "[][a] now{}");
}

TEST_CASE("a value ends where its brackets close, and the key's type says what it is") {
  CHECK(
      tell("qwen3_coder",
           "<tool_call><function=run_shell><parameter=command>007</parameter><parameter=timeout>\n"
           "[1,\n2]\n</parameter><parameter=background>True</parameter><parameter=tag>None"
           "</parameter></function></tool_call>") ==
      "[][] run_shell{\"command\": \"007\", \"timeout\": [1,\n2], \"background\": true, "
      "\"tag\": null}");
  CHECK(tell("qwen3_coder",
             "<tool_call><function=f><parameter=a>1</parameter><parameter=b>one</parameter>"
             "<parameter=c>\"1\"</parameter></function></tool_call>") ==
        "[][] f{\"a\": 1, \"b\": \"one\", \"c\": \"\\\"1\\\"\"}");
}

TEST_CASE("types come from unions, enumerations and references") {
  const ToolSet tools(
      parse_json(
          R"([{"function":{"name":"f","parameters":{"$defs":{"n":{"type":"integer"}},)"
          R"("properties":{)"
          R"("ref":{"$ref":"#/$defs/n"},"any":{"anyOf":[{"type":"string"},{"type":"null"}]},)"
          R"("word":{"enum":["a","b"]},"mixed":{"enum":["a",1]},)"
          R"("loop":{"$ref":"#/properties/loop"},)"
          R"("all":{"allOf":[{"type":"number"}]},"none":{}}}}}])")
          .value());
  CHECK(tools.types_of("f", "ref") == kJsonInteger);
  CHECK(tools.types_of("f", "any") == (kJsonString | kJsonNull));
  CHECK(tools.types_of("f", "word") == kJsonString);
  CHECK(tools.types_of("f", "mixed") == (kJsonString | kJsonInteger));
  CHECK(tools.types_of("f", "loop") == kJsonAny);
  CHECK(tools.types_of("f", "all") == (kJsonInteger | kJsonFraction));
  CHECK(tools.types_of("f", "none") == kJsonAny);
  CHECK(tools.types_of("g", "ref") == kJsonAny);
  CHECK(value_as_json("null", kJsonString | kJsonNull) == "null");
  CHECK(value_as_json("7", kJsonString | kJsonNull) == "\"7\"");
  CHECK(value_as_json("7", kJsonString | kJsonInteger) == "7");
  CHECK(value_as_json("{a", kJsonObject) == "\"{a\"");
}

TEST_CASE("a second call with the same id gets a new id") {
  const Parsed parsed = parse_whole(
      "kimi_k2",
      "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}"
      "<|tool_call_end|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}"
      "<|tool_call_end|><|tool_calls_section_end|>");
  REQUIRE(parsed.message.calls.size() == 2);
  CHECK(parsed.message.calls[0].id == "functions.now:0");
  CHECK(parsed.message.calls[1].id == "functions.now:1");
}

TEST_CASE("without tools only reasoning is parsed, and without a format nothing") {
  OutputParser::Options options;
  options.format = find_tool_format("hermes");
  const std::string raw = "<think>a</think><tool_call>{\"name\": \"now\", \"arguments\": {}}";
  CHECK(told(parse_chunks(options, {raw}, false).message) ==
        "[<tool_call>{\"name\": \"now\", \"arguments\": {}}][a]");
  options.format = nullptr;
  CHECK(told(parse_chunks(options, bytes_of(raw + "é\xFF"), false).message) ==
        "[" + raw + "é\uFFFD][]");
}

TEST_CASE("the end of a value in a string of its JSON is part of the string") {
  const std::string begin =
      "<tool_call>\n<function=search_files>\n<parameter=pattern>\nx\n"
      "</parameter>\n<parameter=paths>\n";
  const std::string end = "\n</parameter>\n</function>\n</tool_call>";
  CHECK(tell("qwen3_coder", begin + R"(["a</parameter>", "\"</parameter>"])" + end) ==
        R"([][] search_files{"pattern": "x", "paths": ["a</parameter>", "\"</parameter>"]})");
  // A string that never ends does not swallow the end of the value.
  CHECK(tell("qwen3_coder", begin + R"(["a)" + end) ==
        R"([][] search_files{"pattern": "x", "paths": "[\"a"})");
}

TEST_CASE("K2 may begin a call inside its reasoning") {
  CHECK(tell("kimi_k2",
             "<think>Hm.<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0"
             "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>") ==
        "[][Hm.] now{}");
}

TEST_CASE("held-back text has a limit, beyond which it is sent on") {
  const std::pair<const char*, std::string> kBegins[] = {
      {"hermes", "<tool_call>{\"arguments\": {\"a\": \""},
      {"llama3", "{\"parameters\": {\"a\": \""}};
  for (const auto& [format, begin] : kBegins) {
    OutputParser::Options options;
    options.format = find_tool_format(format);
    options.tools = recorded_tools();
    OutputParser parser(options);
    size_t sent = 0;
    const auto feed = [&](const std::string& text) {
      for (const OutputDelta& delta : parser.push(text)) {
        if (delta.kind == Kind::kContent) sent += delta.text.size();
      }
    };
    const std::string piece(4096, 'x');
    feed(begin);
    size_t fed = begin.size();
    while (fed <= kHeldBytesMax) {
      CHECK(sent == 0);
      feed(piece);
      fed += piece.size();
    }
    CHECK(sent == fed);
  }
}

}  // namespace lockstep

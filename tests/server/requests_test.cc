#include <doctest/doctest.h>

#include "server/generation/stop_matcher.h"
#include "server/openai/openai_chat.h"
#include "server/openai/openai_completions.h"
#include "server/served.h"

namespace lockstep {
namespace {

// "status param code" of a refusal, "ok" otherwise.
template <class T>
std::string verdict(const ApiResult<T>& result) {
  if (result.ok()) return "ok";
  CHECK(!result.error().message.empty());
  CHECK(result.error().message.back() != '.');
  return std::to_string(result.error().status) + " " + result.error().param + " " +
         result.error().code;
}

std::string completion(const std::string& field) {
  return verdict(parse_completion_request(R"({"prompt":"a",)" + field + "}"));
}

std::string chat(const std::string& field) {
  return verdict(
      parse_chat_request(R"({"messages":[{"role":"user","content":"a"}],)" + field + "}"));
}

std::string chat_message(const std::string& message) {
  return verdict(parse_chat_request(R"({"messages":[)" + message + "]}"));
}

}  // namespace

TEST_CASE("unsupported fields are refused by name, except with neutral values") {
  struct Case {
    const char* name;
    const char* refused;
    const char* neutral;
  };
  const Case of_completion[] = {{"best_of", "2", "1"}};
  const Case of_chat[] = {
      {"functions", R"([{"name":"f"}])", "[]"},
      {"function_call", R"({"name":"f"})", "\"none\""},
      {"modalities", R"(["audio"])", R"(["text"])"},
      {"audio", "{}", "null"},
      {"verbosity", "\"low\"", "\"medium\""},
      {"service_tier", "\"priority\"", "\"default\""},
      {"prediction", "{}", "null"},
      {"web_search_options", "{}", "null"},
      {"chat_template", "\"x\"", "null"},
      {"documents", "[]", "null"},
  };
  const auto check = [](const Case& one, std::string (*parse)(const std::string&)) {
    const std::string name = one.name;
    CAPTURE(name);
    CHECK(parse("\"" + name + "\":" + one.refused) == "400 " + name + " unsupported_parameter");
    CHECK(parse("\"" + name + "\":" + one.neutral) == "ok");
  };
  for (const Case& one : of_completion) check(one, completion);
  for (const Case& one : of_chat) check(one, chat);
}

TEST_CASE("wrong types and values out of range name their field") {
  for (const auto& parse : {completion, chat}) {
    CHECK(parse(R"("temperature":2.1)") == "400 temperature invalid_value");
    CHECK(parse(R"("temperature":-0.1)") == "400 temperature invalid_value");
    CHECK(parse(R"("temperature":"hot")") == "400 temperature invalid_value");
    CHECK(parse(R"("temperature":2)") == "ok");
    CHECK(parse(R"("top_p":1.5)") == "400 top_p invalid_value");
    CHECK(parse(R"("top_k":-2)") == "400 top_k invalid_value");
    CHECK(parse(R"("top_k":-1)") == "ok");
    CHECK(parse(R"("max_tokens":0)") == "400 max_tokens invalid_value");
    CHECK(parse(R"("max_tokens":1.5)") == "400 max_tokens invalid_value");
    CHECK(parse(R"("max_tokens":16.0)") == "ok");
    CHECK(parse(R"("max_tokens":99999999999)") == "400 max_tokens invalid_value");
    CHECK(parse(R"("n":0)") == "400 n invalid_value");
    CHECK(parse(R"("n":129)") == "400 n invalid_value");
    CHECK(parse(R"("seed":1e300)") == "400 seed invalid_value");
    CHECK(parse(R"("seed":"x")") == "400 seed invalid_value");
    CHECK(parse(R"("stop":7)") == "400 stop invalid_value");
    CHECK(parse(R"("stop":"")") == "400 stop invalid_value");
    CHECK(parse(R"("stop":["a",null])") == "400 stop invalid_value");
    CHECK(parse(R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15",)"
                R"("16"])") == "ok");
    CHECK(parse(R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15",)"
                R"("16","17"])") == "400 stop invalid_value");
    CHECK(parse(R"("stream":1)") == "400 stream invalid_value");
    CHECK(parse(R"("stream_options":[])") == "400 stream_options invalid_value");
    CHECK(parse(R"("stream_options":{"include_usage":"yes"})") ==
          "400 stream_options.include_usage invalid_value");
    CHECK(parse(R"("model":5)") == "400 model invalid_value");
    CHECK(parse(R"("user":5)") == "400 user invalid_value");
  }
  CHECK(completion(R"("logprobs":21)") == "400 logprobs invalid_value");
  CHECK(completion(R"("logprobs":true)") == "400 logprobs invalid_value");
  CHECK(completion(R"("logprobs":false)") == "ok");
  CHECK(completion(R"("logprobs":0)") == "ok");
  CHECK(completion(R"("logprobs":1,"echo":true)") == "400 logprobs unsupported_parameter");
  CHECK(chat(R"("logprobs":1)") == "400 logprobs invalid_value");
  CHECK(chat(R"("top_logprobs":2)") == "400 top_logprobs invalid_value");
  CHECK(chat(R"("logprobs":true,"top_logprobs":21)") == "400 top_logprobs invalid_value");
  CHECK(chat(R"("logprobs":true,"top_logprobs":20)") == "ok");
  CHECK(chat(R"("logprobs":false,"top_logprobs":0)") == "ok");
  CHECK(completion(R"("echo":1)") == "400 echo invalid_value");
  CHECK(completion(R"("n":3,"best_of":2)") == "400 best_of invalid_value");
  CHECK(chat(R"("max_completion_tokens":0)") == "400 max_completion_tokens invalid_value");
}

TEST_CASE("sampling options that are out of range name their field") {
  for (const auto& parse : {completion, chat}) {
    for (const char* name : {"min_p", "typical_p"}) {
      CHECK(parse("\"" + std::string(name) + "\":1.01") ==
            "400 " + std::string(name) + " invalid_value");
      CHECK(parse("\"" + std::string(name) + "\":1") == "ok");
    }
    for (const char* name : {"presence_penalty", "frequency_penalty"}) {
      CHECK(parse("\"" + std::string(name) + "\":2.1") ==
            "400 " + std::string(name) + " invalid_value");
      CHECK(parse("\"" + std::string(name) + "\":-2") == "ok");
    }
    for (const char* name : {"repetition_penalty", "repeat_penalty"}) {
      CHECK(parse("\"" + std::string(name) + "\":0") ==
            "400 " + std::string(name) + " invalid_value");
      CHECK(parse("\"" + std::string(name) + "\":1.1") == "ok");
    }
    for (const char* name : {"repeat_last_n", "dry_penalty_last_n"}) {
      CHECK(parse("\"" + std::string(name) + "\":-2") ==
            "400 " + std::string(name) + " invalid_value");
      CHECK(parse("\"" + std::string(name) + "\":-1") == "ok");
    }
    CHECK(parse(R"("dry_multiplier":-1)") == "400 dry_multiplier invalid_value");
    CHECK(parse(R"("dry_base":0.5)") == "400 dry_base invalid_value");
    CHECK(parse(R"("dry_allowed_length":1.5)") == "400 dry_allowed_length invalid_value");
    CHECK(parse(R"("dry_sequence_breakers":["\n"])") == "ok");
    CHECK(parse(R"("dry_sequence_breakers":[])") == "ok");
    CHECK(parse(R"("dry_sequence_breakers":[""])") == "400 dry_sequence_breakers invalid_value");
    CHECK(parse(R"("dry_sequence_breakers":"x")") == "400 dry_sequence_breakers invalid_value");
    CHECK(parse(R"("logit_bias":{})") == "ok");
    CHECK(parse(R"("logit_bias":{"5":-100,"6":100})") == "ok");
    CHECK(parse(R"("logit_bias":{"5":101})") == "400 logit_bias.5 invalid_value");
    CHECK(parse(R"("logit_bias":{"5":"x"})") == "400 logit_bias.5 invalid_value");
    CHECK(parse(R"("logit_bias":{"hello":1})") == "400 logit_bias invalid_value");
    CHECK(parse(R"("logit_bias":{"-5":1})") == "400 logit_bias invalid_value");
    CHECK(parse(R"("logit_bias":{"5x":1})") == "400 logit_bias invalid_value");
    CHECK(parse(R"("logit_bias":[5])") == "400 logit_bias invalid_value");
    CHECK(parse(R"("min_tokens":-1)") == "400 min_tokens invalid_value");
    CHECK(parse(R"("ignore_eos":1)") == "400 ignore_eos invalid_value");
  }
}

TEST_CASE("invalid prompts and messages are refused") {
  for (const char* prompt :
       {"5", "[]", "[[]]", "{}", "[1,\"a\"]", "[[1],5]", "[-1]", "[4294967296]", "[1.5]", "true"}) {
    CAPTURE(prompt);
    CHECK(verdict(parse_completion_request(std::string(R"({"prompt":)") + prompt + "}")) ==
          "400 prompt invalid_value");
  }
  CHECK(verdict(parse_completion_request("{}")) == "400 prompt invalid_value");
  CHECK(verdict(parse_chat_request("{}")) == "400 messages invalid_value");
  CHECK(verdict(parse_chat_request(R"({"messages":[]})")) == "400 messages invalid_value");
  CHECK(chat_message("5") == "400 messages[0] invalid_value");
  CHECK(chat_message(R"({"content":"x"})") == "400 messages[0].role invalid_value");
  CHECK(chat_message(R"({"role":"robot"})") == "400 messages[0].role invalid_value");
  CHECK(chat_message(R"({"role":"user","content":5})") == "400 messages[0].content invalid_value");
  CHECK(chat_message(R"({"role":"user","content":[{"type":"image_url","image_url":{}}]})") ==
        "400 messages[0].content unsupported_parameter");
  const auto image = parse_chat_request(
      R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{}}]}]})");
  CHECK(image.error().message ==
        "images are not supported: lockstep computes the text part of models");
  CHECK(chat_message(R"({"role":"user","content":[{"type":"text"}]})") ==
        "400 messages[0].content invalid_value");
  for (const char* role : {"system", "developer", "user", "assistant", "tool"}) {
    CHECK(chat_message(R"({"role":")" + std::string(role) + R"(","content":"x"})") == "ok");
  }
}

TEST_CASE("invalid tools and tool calls are refused with their place") {
  const auto tool = [](const std::string& text) { return chat(R"("tools":[)" + text + "]"); };
  const std::string good = R"({"type":"function","function":{"name":"f"}})";
  CHECK(tool(good) == "ok");
  CHECK(tool("") == "ok");
  CHECK(chat(R"("tools":{})") == "400 tools invalid_value");
  CHECK(tool("5") == "400 tools[0] invalid_value");
  CHECK(tool(good + ",{}") == "400 tools[1].function invalid_value");
  CHECK(tool(R"({"type":"web_search"})") == "400 tools[0].type unsupported_parameter");
  CHECK(tool(R"({"function":{"name":""}})") == "400 tools[0].function.name invalid_value");
  CHECK(tool(R"({"function":{"name":"f","parameters":"x"}})") ==
        "400 tools[0].function.parameters invalid_value");
  CHECK(tool(R"({"function":{"name":"f","strict":true}})") == "ok");
  CHECK(tool(R"({"function":{"name":"f","strict":1}})").starts_with("400 tools[0].function."));
  CHECK(tool(R"({"function":{"name":"f","strict":false}})") == "ok");
  CHECK(chat(R"("parallel_tool_calls":false)") == "ok");
  CHECK(chat(R"("parallel_tool_calls":false,"tools":[)" + good + "]") == "ok");

  const auto call = [](const std::string& text) {
    return chat_message(R"({"role":"assistant","content":null,"tool_calls":[)" + text + "]}");
  };
  CHECK(call(R"({"id":"a","type":"function","function":{"name":"f","arguments":"{}"}})") == "ok");
  CHECK(call(R"({"function":{"name":"f","arguments":{}}})") == "ok");
  CHECK(call("{}") == "400 messages[0].tool_calls[0].function invalid_value");
  CHECK(call(R"({"id":7,"function":{"name":"f"}})") ==
        "400 messages[0].tool_calls[0].id invalid_value");
  CHECK(call(R"({"function":{"name":"f","arguments":[]}})") ==
        "400 messages[0].tool_calls[0].function.arguments invalid_value");
  CHECK(chat_message(R"({"role":"assistant","tool_calls":{}})") ==
        "400 messages[0].tool_calls invalid_value");
  CHECK(chat_message(R"({"role":"tool","tool_call_id":1})") ==
        "400 messages[0].tool_call_id invalid_value");
}

TEST_CASE("a last message can be continued if it is the assistant's and nothing follows it") {
  const std::string said = R"({"messages":[{"role":"assistant","content":"a"}],)";
  CHECK(verdict(parse_chat_request(said + R"("continue_final_message":true})")) == "ok");
  CHECK(verdict(parse_chat_request(
            said + R"("continue_final_message":true,"add_generation_prompt":true})")) ==
        "400 continue_final_message invalid_value");
  CHECK(chat(R"("continue_final_message":true)") == "400 continue_final_message invalid_value");
  CHECK(chat(R"("add_generation_prompt":false)") == "ok");
  CHECK(chat(R"("chat_template_kwargs":5)") == "400 chat_template_kwargs invalid_value");
}

TEST_CASE("a body that is not a JSON object is refused with a sentence") {
  for (const char* body : {"", "{", "[1]", "null", "{\"prompt\":\"\xFF\"}", "{} x"}) {
    CAPTURE(body);
    CHECK(verdict(parse_completion_request(body)).substr(0, 3) == "400");
    CHECK(verdict(parse_chat_request(body)).substr(0, 3) == "400");
  }
}

TEST_CASE("stop strings are found wherever the text is cut") {
  const std::string text = "aab aabc aabcc";
  for (size_t step = 1; step <= text.size(); ++step) {
    StopMatcher matcher({"aabcc", "zz"});
    std::string emitted;
    for (size_t at = 0; at < text.size(); at += step) {
      emitted += matcher.push(std::string_view(text).substr(at, step));
    }
    CHECK(emitted == "aab aabc ");
    CHECK(matcher.is_stopped());
    CHECK(matcher.finish() == "");
  }
  StopMatcher none({});
  CHECK(none.push("abc") == "abc");
  StopMatcher half({"abc"});
  CHECK(half.push("xab") == "x");
  CHECK(half.push("ab") == "ab");
  CHECK(half.finish() == "ab");
}

}  // namespace lockstep

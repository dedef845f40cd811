#include "router/request_key.h"

#include <doctest/doctest.h>

#include <string>

namespace lockstep {
namespace {

RequestKey key_of(std::string_view body, std::string_view path = "/v1/chat/completions") {
  const auto json = parse_json(body);
  REQUIRE(json.ok());
  return read_request_key(path, json.value());
}

std::string chat(std::string_view messages, std::string_view model = "m") {
  return std::string(R"({"model": ")") + std::string(model) + R"(", "messages": [)" +
         std::string(messages) + "]}";
}

constexpr const char* kSystem = R"({"role": "system", "content": "Be brief"})";
constexpr const char* kFirst = R"({"role": "user", "content": "Who wrote Emma?"})";
constexpr const char* kAnswer = R"({"role": "assistant", "content": "Jane Austen"})";
constexpr const char* kSecond = R"({"role": "user", "content": "When?"})";

std::string joined(std::initializer_list<const char*> messages) {
  std::string all;
  for (const char* message : messages) all += (all.empty() ? "" : ", ") + std::string(message);
  return all;
}

}  // namespace

TEST_CASE("the turns of one conversation have one prefix") {
  const auto first = key_of(chat(joined({kSystem, kFirst}))).prefix;
  REQUIRE(first.has_value());
  CHECK(key_of(chat(joined({kSystem, kFirst, kAnswer, kSecond}))).prefix == first);
  CHECK(key_of(chat(joined({kSystem, kSecond}))).prefix != first);
  CHECK(key_of(chat(joined({kFirst}))).prefix != first);
  CHECK(key_of(chat(joined({kSystem, kFirst}), "another")).prefix != first);
}

TEST_CASE("parts of a message count like their text") {
  const char* parts =
      R"({"role": "user", "content": [{"type": "text", "text": "Who wrote Emma?"}]})";
  CHECK(key_of(chat(parts)).prefix == key_of(chat(kFirst)).prefix);
}

TEST_CASE("only the beginning of a long text counts") {
  const std::string head(kPrefixBytesMax, 'x');
  const auto prompt = [](const std::string& text) {
    return key_of(R"({"model": "m", "prompt": ")" + text + R"("})", "/v1/completions").prefix;
  };
  CHECK(prompt(head + "one") == prompt(head + "another"));
  CHECK(prompt("y" + head) != prompt(head));
  const auto message = [](const std::string& text) {
    return key_of(chat(R"({"role": "user", "content": ")" + text + R"("})")).prefix;
  };
  CHECK(message(head + "one") == message(head + "another"));
}

TEST_CASE("prompts are texts, token ids, or lists, of which the first element counts") {
  const auto prompt = [](std::string_view json) {
    return key_of(R"({"prompt": )" + std::string(json) + "}", "/v1/completions").prefix;
  };
  CHECK(prompt(R"("a b")").has_value());
  CHECK(prompt(R"(["a b", "c"])") == prompt(R"("a b")"));
  CHECK(prompt("[1, 2, 3]").has_value());
  CHECK(prompt("[[1, 2, 3], [4]]") == prompt("[1, 2, 3]"));
  CHECK(prompt("[1, 2, 3]") != prompt("[1, 2, 4]"));
}

TEST_CASE("a request without a cacheable beginning has no prefix") {
  CHECK(!key_of(R"({"model": "m", "input": "a"})", "/v1/embeddings").prefix.has_value());
  for (const char* body :
       {"{}", "[]", "1", "null", R"({"messages": []})", R"({"messages": 1})", R"({"prompt": []})",
        R"({"prompt": null})", R"({"prompt": [null]})", R"({"prompt": {}})", R"({"model": 7})"}) {
    CAPTURE(body);
    CHECK(!key_of(body).prefix.has_value());
    CHECK(key_of(body).model.empty());
  }
}

TEST_CASE("invalid messages still have one prefix and cause no crash") {
  for (const char* messages : {"1", "null", "{}", R"({"role": 1, "content": {}})",
                               R"({"content": [1, null, {"text": 3}]})"}) {
    CAPTURE(messages);
    CHECK(key_of(chat(messages)).prefix.has_value());
  }
}

TEST_CASE("the stream flag is read as given") {
  CHECK(key_of(R"({"stream": true})").is_stream);
  CHECK(!key_of(R"({"stream": false})").is_stream);
  CHECK(!key_of(R"({"stream": "true"})").is_stream);
  CHECK(!key_of("{}").is_stream);
}

TEST_CASE("a model is named exactly, in any case, or by the last part of a path") {
  CHECK(is_name_of("Qwen3-0.6B", "Qwen3-0.6B"));
  CHECK(is_name_of("qwen3-0.6b", "Qwen3-0.6B"));
  CHECK(is_name_of("Qwen/Qwen3-0.6B", "Qwen3-0.6B"));
  CHECK(is_name_of("Qwen3-0.6B", "Qwen/Qwen3-0.6B"));
  CHECK(!is_name_of("Qwen3-0.6", "Qwen3-0.6B"));
  CHECK(!is_name_of("", "Qwen3-0.6B"));
}

}  // namespace lockstep

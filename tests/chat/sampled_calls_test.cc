#include "chat/calls/sampled_calls.h"

#include <doctest/doctest.h>

#include <ctime>

#include "chat/chat_format.h"
#include "chat/rendered.h"

namespace lockstep {
namespace {

// The template's rendering of a call that comes back with these arguments.
std::string rendered(const std::string& text, std::string_view arguments,
                     const SampledCalls* sampled) {
  const auto format = ChatFormat::parse({text, "", {}}).value();
  const Json messages = JsonArray{
      JsonObject{{"role", "user"}, {"content", "a"}},
      JsonObject{
          {"role", "assistant"},
          {"content", ""},
          {"tool_calls", JsonArray{JsonObject{
                             {"id", "c1"},
                             {"type", "function"},
                             {"function", JsonObject{{"name", "f"}, {"arguments", arguments}}}}}}}};
  ChatInput input;
  input.messages = &messages;
  input.sampled = sampled;
  return prompt_text(format->write(input).value());
}

constexpr const char* kObjects =
    "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments.keys() | list }}"
    "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
constexpr const char* kTexts =
    "{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments + '.' }}{% endfor %}"
    "{% endfor %}";

}  // namespace

TEST_CASE("the arguments a model wrote are found by id and value") {
  SampledCalls calls;
  calls.remember({"c1", "f", R"({"a":  1e0, "b": "\u00e9"})"});
  CHECK(calls.find("c1", json_of(R"({"a":1.0,"b":"é"})")) == R"({"a":  1e0, "b": "\u00e9"})");
  CHECK_FALSE(calls.find("c2", json_of(R"({"a":1.0,"b":"é"})")));
  CHECK_FALSE(calls.find("c1", json_of(R"({"a":2.0,"b":"é"})")));
  calls.remember({"c1", "f", "{\"a\": "});
  calls.remember({"c1", "f", "[1]"});
  CHECK_FALSE(calls.find("c1", json_of("[1]")));
}

TEST_CASE("the oldest calls are forgotten") {
  SampledCalls calls;
  for (size_t i = 0; i <= SampledCalls::kCallsMax; ++i) {
    calls.remember({"c" + std::to_string(i), "f", "{ }"});
  }
  CHECK_FALSE(calls.find("c0", json_of("{}")));
  CHECK(calls.find("c1", json_of("{}")));
  const std::string large = "{\"a\": \"" + std::string(SampledCalls::kBytesMax / 4, 'x') + "\"}";
  calls.remember({"large", "f", large});
  CHECK(calls.find("large", json_of(large)) == large);
  CHECK_FALSE(calls.find("c1", json_of("{}")));
}

TEST_CASE("a call that comes back is rendered as the model wrote it") {
  const std::string sampled = R"({"city":"Bonn" , "days":2})";
  SampledCalls calls;
  calls.remember({"c1", "f", sampled});
  for (const char* sent : {R"({"city":"Bonn","days":2})", R"({"city": "Bonn", "days": 2})"}) {
    CHECK(rendered(kObjects, sent, &calls) == "['city', 'days']" + sampled);
    CHECK(rendered(kTexts, sent, &calls) == sampled + ".");
    CHECK(rendered(kTexts, sent, nullptr) == std::string(sent) + ".");
  }
  CHECK(rendered(kObjects, R"({"city":"Bonn","days":2})", nullptr) ==
        R"(['city', 'days']{"city": "Bonn", "days": 2})");
  CHECK(rendered(kObjects, R"({"city":"Rome"})", &calls) == R"(['city']{"city": "Rome"})");
}

}  // namespace lockstep

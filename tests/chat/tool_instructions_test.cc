#include "chat/tool_instructions.h"

#include <doctest/doctest.h>

#include "chat/chat_format.h"
#include "chat/rendered.h"

namespace lockstep {
namespace {

constexpr const char* kPlain =
    "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}";

std::string prompt(const std::string& text, const Json& messages, const Json* tools) {
  ChatInput input;
  input.messages = &messages;
  input.tools = tools;
  return prompt_text(ChatFormat::parse({text, "", {}}).value()->write(input).value());
}

const Json& weather_tools() {
  static const Json tools = json_of(
      R"([{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}])");
  return tools;
}

}  // namespace

TEST_CASE("a template that does not know tools gets them in the system message") {
  const Json messages =
      json_of(R"([{"role":"system","content":[{"type":"text","text":"Be brief."}]},)"
              R"({"role":"user","content":"Rain?"}])");
  const std::string text = prompt(kPlain, messages, &weather_tools());
  CHECK(text.find("[system] Be brief.\n\nYou can call these functions:\n"
                  "{\"name\":\"weather\",\"parameters\":{\"type\":\"object\"}}\n") == 0);
  CHECK(text.find("\n[user] Rain?\n") != std::string::npos);
  CHECK(prompt(kPlain, messages, nullptr) == "[system] Be brief.\n[user] Rain?\n");
  // A template that shows tools itself is left alone.
  const std::string shows =
      prompt("{{ tools | length }}" + std::string(kPlain), messages, &weather_tools());
  CHECK(shows == "1[system] Be brief.\n[user] Rain?\n");
}

TEST_CASE("calls and results become text, and the roles keep alternating") {
  const Json told = with_tools_as_text(
      json_of(
          R"([{"role":"user","content":"Rain?"},{"role":"assistant","content":"I look.",)"
          R"("tool_calls":[{"id":"a","function":{"name":"weather",)"
          R"("arguments":"{\"city\":\"Bonn\"}"}},)"
          R"({"id":"b","function":{"name":"weather","arguments":"{"}}]},)"
          R"({"role":"tool","tool_call_id":"a","content":"yes"},)"
          R"({"role":"tool","tool_call_id":"b","content":"no"},{"role":"user","content":"So?"}])"),
      weather_tools());
  const JsonArray& messages = told.as_array();
  REQUIRE(messages.size() == 5);
  CHECK(messages[0].at("role") == "system");
  CHECK(messages[2] ==
        json_of(R"({"role":"assistant","content":"I look.\n[{\"name\":\"weather\",\"arguments\":)"
                R"({\"city\":\"Bonn\"}},{\"name\":\"weather\",\"arguments\":\"{\"}]"})"));
  CHECK(messages[3] ==
        json_of(
            R"({"role":"user","content":"Result of the call:\nyes\n\nResult of the call:\nno"})"));
  CHECK(messages[4].at("content") == "So?");
}

}  // namespace lockstep

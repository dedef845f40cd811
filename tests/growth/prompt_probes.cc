// A chat request from its body to a plan: the template, the tokens, the constraint on the answer,
// and the parsers of the answer.
#include <memory>

#include "growth/probe.h"
#include "server/chat/chat_plan.h"
#include "server/fake_model.h"
#include "server/openai/openai_chat.h"

namespace lockstep {
namespace {

std::shared_ptr<FakeModel> model() {
  static const auto made = [] {
    auto fake = std::make_shared<FakeModel>();
    fake->folder().chat_format =
        ChatFormat::parse({source_file("tests/data/templates/Qwen3-Coder.jinja"), "", {}});
    return fake;
  }();
  return made;
}

bool plans(const std::string& body) {
  const auto request = parse_chat_request(body);
  if (!request.ok()) return false;
  const SampledCalls sampled;
  auto prompt = make_chat_prompt(request.value(), *model(), sampled);
  if (!prompt.ok()) return false;
  prompt.value().ids.resize(10);  // so that it fits into the model's context
  return plan_chat(request.value(), *model(), std::move(prompt.value())).ok();
}

#define ASKED R"({"messages":[{"role":"user","content":"a"}],"tools":[)"
#define FUNCTION(name, properties)                                        \
  R"({"type":"function","function":{"name":")" name R"(","parameters":{)" \
  R"("type":"object","properties":{)" properties "}}}}"

}  // namespace

Probes prompt_probes() {
  return list_probes(
      {
          {"plan: messages", 100, R"({"messages":[)",
           R"({"role":"user","content":"@"},{"role":"assistant","content":"@"})",
           R"(,{"role":"user","content":"@"}]})"},
          {"plan: tools", 20, ASKED,
           FUNCTION("f@", R"("p":{"type":"string"},"q":{"type":"integer"})"), "]}"},
          {"plan: properties of a tool", 25,
           ASKED R"({"type":"function","function":{"name":"f","parameters":{"properties":{)",
           R"("p@":{"type":"string"})", "}}}}]}"},
          {"plan: calls of a conversation", 40, R"({"messages":[{"role":"user","content":"a"},)",
           R"({"role":"assistant","content":"","tool_calls":[{"id":"c@","type":"function",)"
           R"("function":{"name":"f","arguments":"{\"p\":@}"}}]},)"
           R"({"role":"tool","tool_call_id":"c@","content":"@"})",
           "],\"tools\":[" FUNCTION("f", R"("p":{"type":"integer"})") "]}"},
      },
      plans);
}

}  // namespace lockstep

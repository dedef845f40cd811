#include "chat/normalise.h"

#include "chat/chat_format.h"
#include "chat/rendered.h"
#include "chat/template_file.h"

namespace lockstep {
namespace {

TemplateNeeds needs_of(const std::string& name) {
  auto model = load_model_template(LOCKSTEP_SOURCE_DIR "/tests/data/templates/" + name + ".jinja");
  REQUIRE_MESSAGE(model.ok(), name);
  return probe_template(model.value().chat_template).value();
}

TemplateNeeds needs_of_source(std::string_view source) {
  return probe_template(ChatTemplate::parse(source).value()).value();
}

std::string normalised(std::string_view messages, const TemplateNeeds& needs) {
  return dump_json(normalised_messages(json_of(messages), needs));
}

TemplateNeeds no_needs() {
  TemplateNeeds needs;
  needs.empty_content = false;
  return needs;
}

}  // namespace

TEST_CASE("the form in which a published template takes tool-call arguments is detected") {
  for (const char* name :
       {"Qwen3-Coder", "GLM-4.6", "openai-gpt-oss-120b", "google-gemma-4-31B-it"}) {
    CHECK_MESSAGE(needs_of(name).arguments == ArgumentsForm::kObject, name);
  }
  CHECK(needs_of_source("{% for m in messages %}{% for c in m.tool_calls %}"
                        "{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}")
            .arguments == ArgumentsForm::kText);
  CHECK(needs_of("mistral-common-v13").arguments == ArgumentsForm::kAsGiven);
}

TEST_CASE("the form in which a published template takes content is detected") {
  CHECK(needs_of("Qwen-Qwen2.5-7B-Instruct").text_content);
  CHECK(needs_of("microsoft-Phi-3.5-mini-instruct").text_content);
  CHECK(!needs_of("mistral-common-v13").text_content);
  CHECK(!needs_of("Qwen-Qwen3-0.6B").part_content);
}

TEST_CASE("the place where a published template takes the reasoning is detected") {
  CHECK(std::string(needs_of("openai-gpt-oss-120b").reasoning_key) == "thinking");
  CHECK(needs_of("openai-gpt-oss-120b").reasoning_without_content);
  CHECK(std::string(needs_of("Qwen-Qwen3-0.6B").reasoning_key) == "reasoning_content");
  CHECK(!needs_of("Qwen-Qwen3-0.6B").reasoning_without_content);
}

TEST_CASE("a template without a system role gets the system message in the user's") {
  const TemplateNeeds needs = needs_of_source(
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
      "{{ m.content }}{% endfor %}");
  CHECK(needs.system_in_user);
  CHECK(!needs_of("Qwen-Qwen2.5-7B-Instruct").system_in_user);
  CHECK(normalised(R"([{"role":"system","content":"S"},{"role":"user","content":"U"}])", needs) ==
        R"([{"role":"user","content":"S\n\nU"}])");
  CHECK(normalised(R"([{"role":"system","content":"S"}])", needs) ==
        R"([{"role":"user","content":"S"}])");
}

TEST_CASE("arguments are converted to the form that the template takes") {
  const char* text = R"([{"content":"","tool_calls":[{"function":{"arguments":"{\"a\": 1}"}}]}])";
  const char* object = R"([{"content":"","tool_calls":[{"function":{"arguments":{"a":1}}}]}])";
  TemplateNeeds needs = no_needs();
  CHECK(normalised(text, needs) == dump_json(json_of(text)));
  needs.arguments = ArgumentsForm::kObject;
  CHECK(normalised(text, needs) == object);
  CHECK(normalised(object, needs) == object);
  CHECK(normalised(R"([{"content":"","tool_calls":[{"function":{"arguments":""}}]}])", needs) ==
        R"([{"content":"","tool_calls":[{"function":{"arguments":{}}}]}])");
  CHECK(normalised(R"([{"content":"","tool_calls":[{"function":{"arguments":"{x"}}]}])", needs) ==
        R"([{"content":"","tool_calls":[{"function":{"arguments":{"arguments":"{x"}}}]}])");
  needs.arguments = ArgumentsForm::kText;
  CHECK(normalised(object, needs) ==
        R"([{"content":"","tool_calls":[{"function":{"arguments":"{\"a\":1}"}}]}])");
}

TEST_CASE("content is converted to the form that the template takes") {
  const char* parts = R"([{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}])";
  TemplateNeeds needs = no_needs();
  needs.text_content = true;
  CHECK(normalised(parts, needs) == R"([{"content":"a\nb"}])");
  const char* image = R"([{"content":[{"type":"image_url","image_url":{}}]}])";
  CHECK(normalised(image, needs) == image);
  CHECK(normalised(R"([{"content":null}])", needs) == R"([{"content":null}])");
  needs.empty_content = true;
  CHECK(normalised(R"([{"role":"assistant"}])", needs) == R"([{"role":"assistant","content":""}])");
  needs.part_content = true;
  CHECK(normalised(R"([{"content":"a"}])", needs) ==
        R"([{"content":[{"type":"text","text":"a"}]}])");
}

TEST_CASE("reasoning goes where the template looks for it") {
  TemplateNeeds needs;
  needs.reasoning_key = "thinking";
  CHECK(normalised(R"([{"content":"a","reasoning":"r"}])", needs) ==
        R"([{"content":"a","thinking":"r"}])");
  needs.reasoning_without_content = true;
  CHECK(normalised(R"([{"content":"a","reasoning_content":"r","tool_calls":[{}]}])", needs) ==
        R"([{"content":"","tool_calls":[{}],"thinking":"r\n\na"}])");
}

TEST_CASE("a missing list of tools is passed in the form that the template takes for none") {
  const TemplateNeeds needs = needs_of_source(
      "{% for t in tools %}{{ t.function.name }}{% endfor %}{{ messages[0].content }}");
  CHECK(needs.empty_tools);
  CHECK(!needs_of("Qwen-Qwen3-0.6B").empty_tools);
  const Json none = JsonArray();
  CHECK(dump_json(normalised_tools(nullptr, needs)) == "[]");
  CHECK(dump_json(normalised_tools(&none, TemplateNeeds())) == "null");
  const Json some = json_of("[1]");
  CHECK(dump_json(normalised_tools(&some, needs)) == "[1]");
}

TEST_CASE("messages that are not a list are left to the template") {
  CHECK(normalised("3", TemplateNeeds()) == "3");
  CHECK(normalised("[1]", TemplateNeeds()) == "[1]");
}

TEST_CASE("an API conversation with a call renders through every template that is shipped") {
  const Json messages = json_of(R"([{"role":"system","content":"S"},{"role":"user","content":"U"},
    {"role":"assistant","content":null,"tool_calls":[{"id":"abcdef123","type":"function",
      "function":{"name":"f","arguments":"{\"a\": 1}"}}]},
    {"role":"tool","tool_call_id":"abcdef123","name":"f","content":"R"}])");
  for (const char* name :
       {"GLM-4.6", "HuggingFaceTB-SmolLM3-3B", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B",
        "Qwen3-Coder", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai-DeepSeek-V3.1",
        "ibm-granite-granite-3.3-2B-Instruct", "microsoft-Phi-3.5-mini-instruct",
        "mistral-common-v13", "mistral-common-v3", "openai-gpt-oss-120b"}) {
    auto model = load_model_template(LOCKSTEP_SOURCE_DIR "/tests/data/templates/" +
                                     std::string(name) + ".jinja");
    REQUIRE_MESSAGE(model.ok(), name);
    const JsonObject tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
    const Json prepared =
        normalised_messages(messages, probe_template(model.value().chat_template).value());
    ChatTemplateInput input;
    input.messages = &prepared;
    input.model_variables = &tokens;
    input.now = parse_time("2025-09-07T08:05:03").value();
    const auto pieces = model.value().chat_template.render(input);
    CHECK_MESSAGE(pieces.ok(), name, ": ", pieces.ok() ? "" : pieces.error().message);
    if (pieces.ok())
      CHECK_MESSAGE(prompt_text(pieces.value()).find("U") != std::string::npos, name);
  }
}

TEST_CASE("a template that takes very long to probe is refused early, at load") {
  const std::string loops =
      "{% for i in range(10000) %}{% for j in range(10000) %}{% endfor %}{% endfor %}";
  const auto needs = probe_template(ChatTemplate::parse(loops).value());
  REQUIRE_FALSE(needs.ok());
  CHECK(needs.error().code == ErrorCode::kExhausted);
  const auto format = ChatFormat::parse({loops, "", {}});
  REQUIRE_FALSE(format.ok());
  CHECK(format.error().message.find("a few short conversations") != std::string::npos);
}

}  // namespace lockstep

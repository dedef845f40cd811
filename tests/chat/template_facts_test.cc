#include "chat/template_facts.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep {
namespace {

std::string read_template(std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests" / "data" /
                                     "templates" / (std::string(name) + ".jinja");
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file, path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("published templates say in which format their models call tools") {
  struct Case {
    std::string_view name;
    std::string_view format;
    bool takes_tools = true;
  };
  constexpr Case kCases[] = {{"GLM-4.6", "glm45"},
                             {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
                             {"Qwen-Qwen3-0.6B", "hermes"},
                             {"Qwen3-Coder", "qwen3_coder"},
                             {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3", false},
                             {"deepseek-ai-DeepSeek-V3.1", "deepseek_v31", false},
                             {"mistral-common-v13", "mistral_v11"},
                             {"mistral-common-v3", "mistral_v3"},
                             {"openai-gpt-oss-120b", "gpt_oss"},
                             {"ibm-granite-granite-3.3-2B-Instruct", ""},
                             {"microsoft-Phi-3.5-mini-instruct", "", false}};
  for (const Case& expected : kCases) {
    CAPTURE(expected.name);
    const std::string source = read_template(expected.name);
    CHECK(template_facts(source).tool_format == expected.format);
    CHECK(template_facts(source).takes_tools == expected.takes_tools);
  }
}

TEST_CASE("flags are the known variables that a template looks at") {
  using Flags = std::vector<std::string_view>;
  CHECK(template_facts(read_template("Qwen-Qwen3-0.6B")).flags == Flags{"enable_thinking"});
  CHECK(template_facts(read_template("openai-gpt-oss-120b")).flags ==
        Flags{"builtin_tools", "model_identity", "reasoning_effort"});
  CHECK(template_facts(read_template("deepseek-ai-DeepSeek-V3.1")).flags ==
        Flags{"enable_thinking", "thinking"});
}

TEST_CASE("a word in text, in a string or of another object is no flag") {
  CHECK(template_facts("thinking {{ 'thinking' }}{{ \"a\\\" thinking\" }}").flags.empty());
  CHECK(template_facts("{{ message.thinking }}{{ is_thinking }}{{ thinkings }}").flags.empty());
  CHECK(template_facts("{%if thinking%}").flags.size() == 1);
  CHECK_FALSE(template_facts("").takes_tools);
  CHECK(template_facts("{{ 'unclosed").tool_format.empty());
}

TEST_CASE("a Llama 3 template writes calls as JSON with parameters") {
  CHECK(template_facts("{{ '<|eot_id|>' }}{{ '\"parameters\": ' }}").tool_format == "llama3");
  CHECK(template_facts("{{ '<|eot_id|>' }}").tool_format.empty());
}

}  // namespace
}  // namespace lockstep

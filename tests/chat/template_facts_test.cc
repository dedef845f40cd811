#include "chat/template_facts.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "chat/tools/tool_format.h"

namespace lockstep {
namespace {

std::string read_template(std::string_view name) {
  const std::filesystem::path path = std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "tests" / "data" /
                                     "templates" / (std::string(name) + ".jinja");
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file, path.string());
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST_CASE("the tool-call format is detected from published templates") {
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
                             {"google-gemma-4-31B-it", "gemma4"},
                             {"ibm-granite-granite-3.3-2B-Instruct", ""},
                             {"microsoft-Phi-3.5-mini-instruct", "", false}};
  for (const Case& expected : kCases) {
    CAPTURE(expected.name);
    const std::string source = read_template(expected.name);
    CHECK(template_facts(source).tool_format == expected.format);
    CHECK(template_facts(source).takes_tools == expected.takes_tools);
  }
}

TEST_CASE("the same for templates that are not shipped") {
  const char* given = std::getenv("LOCKSTEP_SHARED_DIR");
  const std::string shared = given ? given : LOCKSTEP_SOURCE_DIR "/../shared";
  const std::string folder = shared + "/data/templates/jinja/";
  if (!std::filesystem::is_directory(folder)) {
    MESSAGE("skipped: there is no " << folder);
    return;
  }
  const std::map<std::string, std::string_view> formats = {
      {"CohereForAI-c4ai-command-r7b-12-2024-tool_use", ""},
      {"GLM-4.6", "glm45"},
      {"HuggingFaceTB-SmolLM3-3B", ""},
      {"Kimi-K2-Instruct", "kimi_k2"},
      {"MiniMax-M2", "minimax_m2"},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "hermes"},
      {"Qwen-Qwen2.5-7B-Instruct", "hermes"},
      {"Qwen-Qwen3-0.6B", "hermes"},
      {"Qwen3-Coder", "qwen3_coder"},
      {"deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek_v3"},
      {"deepseek-ai-DeepSeek-V3.1", "deepseek_v31"},
      {"google-gemma-2-2b-it", ""},
      {"ibm-granite-granite-3.3-2B-Instruct", ""},
      {"meetkai-functionary-medium-v3.2", ""},
      {"meta-llama-Llama-3.1-8B-Instruct", "llama3"},
      {"meta-llama-Llama-3.2-3B-Instruct", "llama3"},
      {"microsoft-Phi-3.5-mini-instruct", ""},
      {"mistral-common-v13", "mistral_v11"},
      {"mistral-common-v3", "mistral_v3"},
      {"mistralai-Mistral-Nemo-Instruct-2407", "mistral_v3"},
      {"moonshotai-Kimi-K2", "kimi_k2"},
      {"openai-gpt-oss-120b", "gpt_oss"},
      {"unsloth-mistral-Devstral-Small-2507", "mistral_v11"}};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string source{std::istreambuf_iterator<char>(file), {}};
    CAPTURE(name);
    REQUIRE(formats.count(name) == 1);
    CHECK(template_facts(source).tool_format == formats.at(name));
  }
}

TEST_CASE("a template with the markers of a format reveals it, and each has a turn of its own") {
  std::set<int> turns;
  for (const ToolFormat& format : tool_formats()) {
    CAPTURE(format.name);
    CHECK(format.template_markers.empty() == (format.name == "generic"));
    CHECK(turns.insert(format.template_turn).second);
    for (const ToolFormat::Markers& markers : format.template_markers) {
      std::string source;
      for (const std::string_view marker : markers) source += std::string(marker) + "\n";
      CHECK(template_facts(source).tool_format == format.name);
    }
  }
}

TEST_CASE("flags are the known variables that a template reads") {
  using Flags = std::vector<std::string_view>;
  CHECK(template_facts(read_template("Qwen-Qwen3-0.6B")).flags == Flags{"enable_thinking"});
  CHECK(template_facts(read_template("openai-gpt-oss-120b")).flags ==
        Flags{"builtin_tools", "model_identity", "reasoning_effort"});
  CHECK(template_facts(read_template("deepseek-ai-DeepSeek-V3.1")).flags ==
        Flags{"enable_thinking", "thinking"});
}

TEST_CASE("a word in text, in a string or of another object is not a flag") {
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

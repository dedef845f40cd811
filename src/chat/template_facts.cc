#include "chat/template_facts.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace lockstep {
namespace {

// Request variables of published templates, besides messages and tools.
constexpr std::string_view kFlags[] = {
    "add_vision_id",     "builtin_tools",   "clear_thinking",
    "controls",          "custom_tools",    "date_string",
    "documents",         "enable_thinking", "model_identity",
    "preserve_thinking", "python_tools",    "reasoning_effort",
    "thinking",          "thinking_budget", "tools_in_user_message",
    "xml_tools",
};

struct Format {
  std::string_view name;
  std::array<std::string_view, 2> markers;  // the template has all of them
};

// Checked in this order: a template of an earlier format may also have markers of a later one.
constexpr Format kFormats[] = {
    {"deepseek_v32", {"｜DSML｜", ""}},
    {"deepseek_v3", {"<｜tool▁calls▁begin｜>", "```json"}},
    {"deepseek_v31", {"<｜tool▁calls▁begin｜>", ""}},
    {"kimi_k2", {"<|tool_calls_section_begin|>", ""}},
    {"gpt_oss", {"<|channel|>", "<|call|>"}},
    {"qwen3_coder", {"<function=", "<parameter="}},
    {"glm45", {"<arg_key>", "<arg_value>"}},
    {"mistral_v11", {"[TOOL_CALLS]", "[ARGS]"}},
    {"mistral_v3", {"[TOOL_CALLS]", ""}},
    {"hermes", {"<tool_call>", "\"name\""}},
    {"hermes", {"<tool_call>", "\\\"name\\\""}},
    {"llama3", {"<|eot_id|>", "\"parameters\":"}},
};

bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool is_member = at > 0 && text[at - 1] == '.';
    const bool begins = at == 0 || (!is_word(text[at - 1]) && !is_member);
    if (begins && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

// The code between {{ }} and {% %} without string literals, which is where variables are named.
std::string code_of(std::string_view source) {
  std::string code;
  bool is_inside = false;
  for (size_t at = 0; at < source.size(); ++at) {
    const std::string_view two = source.substr(at, 2);
    if (!is_inside) {
      is_inside = two == "{{" || two == "{%";
      continue;
    }
    if (two == "}}" || two == "%}") {
      is_inside = false;
      code += '\n';
    } else if (source[at] == '"' || source[at] == '\'') {
      const char quote = source[at++];
      while (at < source.size() && source[at] != quote) at += source[at] == '\\' ? 2 : 1;
    } else {
      code += source[at];
    }
  }
  return code;
}

}  // namespace

TemplateFacts template_facts(std::string_view source) {
  const std::string code = code_of(source);
  TemplateFacts facts;
  facts.takes_tools = has_word(code, "tools");
  for (const std::string_view flag : kFlags) {
    if (has_word(code, flag)) facts.flags.push_back(flag);
  }
  const auto* format = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) {
    return std::all_of(f.markers.begin(), f.markers.end(), [&](std::string_view marker) {
      return source.find(marker) != std::string_view::npos;
    });
  });
  if (format != std::end(kFormats)) facts.tool_format = format->name;
  return facts;
}

std::vector<std::string_view> known_tool_formats() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

}  // namespace lockstep

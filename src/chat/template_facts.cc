#include "chat/template_facts.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "chat/tools/tool_format.h"

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

bool has_markers(const ToolFormat& format, std::string_view source) {
  const auto has_all = [&](const ToolFormat::Markers& markers) {
    return std::all_of(markers.begin(), markers.end(), [&](std::string_view marker) {
      return source.find(marker) != std::string_view::npos;
    });
  };
  const auto& sets = format.template_markers;
  return std::any_of(sets.begin(), sets.end(), has_all);
}

// Empty: none is recognised.
std::string_view format_of_template(std::string_view source) {
  const ToolFormat* first = nullptr;
  for (const ToolFormat& format : tool_formats()) {
    const bool is_earlier = first == nullptr || format.template_turn < first->template_turn;
    if (is_earlier && has_markers(format, source)) first = &format;
  }
  return first == nullptr ? std::string_view() : first->name;
}

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
  facts.tool_format = format_of_template(source);
  return facts;
}

}  // namespace lockstep

#include "chat/tools/tool_format.h"

#include <algorithm>

namespace lockstep {
namespace {

using Body = ToolFormat::Body;
using IdForm = ToolFormat::IdForm;
using ValueForm = ToolFormat::ValueForm;

constexpr std::string_view kThink = "<think>";
constexpr std::string_view kThinkEnd = "</think>";
constexpr std::string_view kDeepseekSeparator = "<｜tool▁sep｜>";
constexpr std::string_view kGemmaQuote = "<|\"|>";
constexpr std::string_view kDeepseekPrefix = "function<｜tool▁sep｜>";

// Llama 3.1 to 3.3: the whole reply is one JSON object; templates ask for "parameters".
ToolFormat llama3() {
  ToolFormat format;
  format.name = "llama3";
  format.template_markers = {{"<|eot_id|>", "\"parameters\":"}};
  format.template_turn = 11;
  format.section_begin = {"<|python_tag|>"};
  format.section_filler = ";,";
  format.bare_begin = "{";
  format.argument_keys = {"parameters", "arguments"};
  format.has_python_calls = true;
  return format;
}

// Qwen 2.5, Qwen 3, QwQ, Hermes 2 and 3.
ToolFormat hermes() {
  ToolFormat format;
  format.name = "hermes";
  format.template_markers = {{"<tool_call>", "\"name\""}, {"<tool_call>", "\\\"name\\\""}};
  format.template_turn = 10;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.call_begin = {"<tool_call>"};
  format.call_end = {"</tool_call>"};
  format.argument_keys = {"arguments", "parameters"};
  format.mistakes.fences = {"```json", "```"};
  return format;
}

// Qwen3-Coder, Qwen 3.5. The outer tag may be missing.
ToolFormat qwen3_coder() {
  ToolFormat format;
  format.name = "qwen3_coder";
  format.template_markers = {{"<function=", "<parameter="}};
  format.template_turn = 6;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.section_begin = {"<tool_call>"};
  format.section_end = {"</tool_call>"};
  format.body = Body::kTaggedValues;
  format.call_begin = {"<function="};
  format.call_end = {"</function>"};
  format.name_end = {">"};
  format.key_begin = "<parameter=";
  format.key_ends = {{">", ValueForm::kBySchema}};
  format.value_end = "</parameter>";
  format.value_has_lines = true;
  format.argument_keys = {"arguments", "parameters"};
  format.mistakes.name_end = {"\n"};
  format.mistakes.key_end = {"\n"};
  return format;
}

ToolFormat deepseek(std::string_view name) {
  ToolFormat format;
  format.name = name;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.section_begin = {"<｜tool▁calls▁begin｜>"};
  format.section_end = {"<｜tool▁calls▁end｜>"};
  format.body = Body::kJsonArguments;
  format.call_begin = {"<｜tool▁call▁begin｜>"};
  format.call_end = {"<｜tool▁call▁end｜>"};
  return format;
}

// DeepSeek V3 and R1: the arguments are fenced as Markdown.
ToolFormat deepseek_v3() {
  ToolFormat format = deepseek("deepseek_v3");
  format.template_markers = {{"<｜tool▁calls▁begin｜>", "```json"}};
  format.template_turn = 2;
  format.name_prefix = kDeepseekPrefix;
  format.name_end = {"\n"};
  format.before_arguments = {"```json", "```"};
  format.after_arguments = {"```"};
  format.marker_parts = {kDeepseekSeparator};
  format.mistakes.name_end = {kDeepseekSeparator};  // as in V3.1
  format.mistakes.name_stops = "`{";
  return format;
}

ToolFormat deepseek_v31() {
  ToolFormat format = deepseek("deepseek_v31");
  format.template_markers = {{"<｜tool▁calls▁begin｜>"}};
  format.template_turn = 3;
  format.name_end = {kDeepseekSeparator};
  format.mistakes.name_prefix = kDeepseekPrefix;  // as in V3
  format.mistakes.name_end = {"\n"};
  format.mistakes.name_stops = "`{";
  format.mistakes.fences = {"```json", "```"};
  return format;
}

// DeepSeek V3.2; V4 calls the section tool_calls.
ToolFormat deepseek_v32() {
  ToolFormat format;
  format.name = "deepseek_v32";
  format.template_markers = {{"｜DSML｜"}};
  format.template_turn = 1;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.section_begin = {"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"};
  format.section_end = {"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"};
  format.body = Body::kTaggedValues;
  format.call_begin = {"<｜DSML｜invoke name=\""};
  format.call_end = {"</｜DSML｜invoke>"};
  format.name_end = {"\">"};
  format.key_begin = "<｜DSML｜parameter name=\"";
  format.key_ends = {{"\" string=\"true\">", ValueForm::kText},
                     {"\" string=\"false\">", ValueForm::kJson},
                     {"\">", ValueForm::kBySchema}};
  format.value_end = "</｜DSML｜parameter>";
  format.mistakes.key_begin = {"<parameter name=\""};
  format.marker_parts = {"｜DSML｜"};
  return format;
}

// K2-Thinking begins calls without closing its reasoning.
ToolFormat kimi_k2() {
  ToolFormat format;
  format.name = "kimi_k2";
  format.template_markers = {{"<|tool_calls_section_begin|>"}};
  format.template_turn = 4;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.calls_end_reasoning = true;
  format.section_begin = {"<|tool_calls_section_begin|>"};
  format.section_end = {"<|tool_calls_section_end|>"};
  format.body = Body::kJsonArguments;
  format.call_begin = {"<|tool_call_begin|>"};
  format.call_end = {"<|tool_call_end|>"};
  format.name_end = {"<|tool_call_argument_begin|>"};
  format.name_holds_id = true;
  format.mistakes.section_begin = {"<|tool_call_section_begin|>"};
  format.mistakes.section_end = {"<|tool_call_section_end|>"};
  format.mistakes.name_stops = "{";
  format.id_form = IdForm::kNumberedName;
  return format;
}

// Mistral 7B v0.3, Nemo: a JSON list. Its templates write the id after the arguments.
ToolFormat mistral_v3() {
  ToolFormat format;
  format.name = "mistral_v3";
  format.template_markers = {{"[TOOL_CALLS]"}};
  format.template_turn = 9;
  format.section_begin = {"[TOOL_CALLS]"};
  format.section_end = {"]"};
  format.section_filler = "[,";
  format.argument_keys = {"arguments", "parameters"};
  format.id_follows_arguments = true;
  format.id_form = IdForm::kNineLetters;
  return format;
}

// Devstral, Small 3, Ministral, Magistral.
ToolFormat mistral_v11() {
  ToolFormat format;
  format.name = "mistral_v11";
  format.template_markers = {{"[TOOL_CALLS]", "[ARGS]"}};
  format.template_turn = 8;
  format.reasoning_begin = "[THINK]";
  format.reasoning_end = "[/THINK]";
  format.body = Body::kJsonArguments;
  format.call_begin = {"[TOOL_CALLS]"};
  format.name_end = {"[ARGS]"};
  format.name_stops = "{";
  format.id_begin = "[CALL_ID]";
  format.argument_keys = {"arguments", "parameters"};  // a list of them, as in v3
  format.id_form = IdForm::kNineLetters;
  return format;
}

// GLM 4.5 to 4.7; the last writes no line ends.
ToolFormat glm45() {
  ToolFormat format;
  format.name = "glm45";
  format.template_markers = {{"<arg_key>", "<arg_value>"}};
  format.template_turn = 7;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.body = Body::kTaggedValues;
  format.call_begin = {"<tool_call>"};
  format.call_end = {"</tool_call>"};
  format.name_end = {"\n"};
  format.name_stops = "<";
  format.key_begin = "<arg_key>";
  format.key_ends = {{"</arg_key>", ValueForm::kBySchema}};
  format.value_begin = "<arg_value>";
  format.value_end = "</arg_value>";
  format.argument_keys = {"arguments", "parameters"};
  format.mistakes.name_stops = "{";
  return format;
}

ToolFormat gpt_oss() {
  ToolFormat format;
  format.name = "gpt_oss";
  format.template_markers = {{"<|channel|>", "<|call|>"}};
  format.template_turn = 5;
  format.body = Body::kJsonArguments;
  format.is_harmony = true;
  format.section_begin = {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"};
  format.call_end = {"<|call|>", "<|end|>", "<|return|>"};
  return format;
}

// MiniMax M2 to M2.7.
ToolFormat minimax_m2() {
  ToolFormat format;
  format.name = "minimax_m2";
  format.template_markers = {{"<minimax:tool_call>", "<invoke name="}};
  format.template_turn = 12;
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.section_begin = {"<minimax:tool_call>"};
  format.section_end = {"</minimax:tool_call>"};
  format.body = Body::kTaggedValues;
  format.call_begin = {"<invoke name=\""};
  format.call_end = {"</invoke>"};
  format.name_end = {"\">"};
  format.key_begin = "<parameter name=\"";
  format.key_ends = {{"\">", ValueForm::kBySchema}};
  format.value_end = "</parameter>";
  format.argument_keys = {"arguments", "parameters"};
  return format;
}

// Gemma 4. Its strings are between tokens of their own. A call may come without the end of the
// thought before it, or right after that without its own beginning.
ToolFormat gemma4() {
  ToolFormat format;
  format.name = "gemma4";
  format.template_markers = {{"<|tool_call>", "<tool_call|>"}};
  format.template_turn = 13;
  format.reasoning_begin = "<|channel>thought";
  format.reasoning_end = "<channel|>";
  format.calls_end_reasoning = true;
  format.body = Body::kBareKeys;
  format.call_begin = {"<|tool_call>"};
  format.call_end = {"<tool_call|>"};
  format.name_prefix = "call:";
  format.prefix_begins_call = true;
  format.name_stops = "{";
  format.value_begin = kGemmaQuote;
  format.value_end = kGemmaQuote;
  format.argument_keys = {"arguments", "parameters"};
  format.mistakes.name_stops = "(<";  // call:NAME(KEY=VALUE), and no arguments at all
  format.marker_parts = {"<|channel>"};
  return format;
}

// For models whose template has no calls: the whole reply is JSON, one call or a list.
ToolFormat generic() {
  ToolFormat format;
  format.name = "generic";
  format.reasoning_begin = kThink;
  format.reasoning_end = kThinkEnd;
  format.section_end = {"]"};
  format.section_filler = "[;,";
  format.bare_begin = "{[";
  format.argument_keys = {"arguments", "parameters"};
  format.mistakes.fences = {"```json", "```"};
  return format;
}

void append(ToolFormat::Markers& all, const ToolFormat::Markers& some) {
  std::copy_if(some.begin(), some.end(), std::back_inserter(all),
               [](std::string_view marker) { return marker.size() > 1; });
}

}  // namespace

ToolFormat::Markers ToolFormat::markers() const {
  Markers all;
  append(all, {reasoning_begin, reasoning_end, id_begin, key_begin, value_begin, value_end});
  for (const Markers* some :
       {&section_begin, &section_end, &call_begin, &call_end, &name_end, &before_arguments,
        &after_arguments, &marker_parts, &mistakes.section_begin, &mistakes.section_end}) {
    append(all, *some);
  }
  for (const KeyEnd& end : key_ends) append(all, {end.marker});
  return all;
}

const std::vector<ToolFormat>& tool_formats() {
  static const std::vector<ToolFormat> formats = {
      llama3(),       hermes(),     qwen3_coder(), deepseek_v3(), deepseek_v31(),
      deepseek_v32(), kimi_k2(),    mistral_v3(),  mistral_v11(), glm45(),
      gpt_oss(),      minimax_m2(), gemma4(),      generic()};
  return formats;
}

const ToolFormat* find_tool_format(std::string_view name) {
  const auto& formats = tool_formats();
  const auto found = std::find_if(formats.begin(), formats.end(),
                                  [name](const ToolFormat& format) { return format.name == name; });
  return found == formats.end() ? nullptr : &*found;
}

}  // namespace lockstep

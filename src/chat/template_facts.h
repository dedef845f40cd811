// Facts found in the text of a chat template without rendering it: the request variables it reads,
// and the format in which the model calls tools. Used by `lockstep show`.
#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

struct TemplateFacts {
  bool takes_tools = false;
  // Those of the known ones ("enable_thinking", "reasoning_effort"...) that the template names.
  std::vector<std::string_view> flags;
  // "hermes", "qwen3_coder", "deepseek_v31"...; empty if none is recognised.
  std::string_view tool_format;
};

TemplateFacts template_facts(std::string_view source);

}  // namespace lockstep

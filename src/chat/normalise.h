// Converts messages from API clients to the form that a model's template reads. A template's needs
// are probed by rendering small conversations once, when the model is loaded, not by its name. Pure
// functions.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "chat/chat_template.h"
#include "json/json.h"

namespace lockstep {

// The form in which a template takes the arguments of tool calls.
enum class ArgumentsForm {
  kAsGiven,  // it takes both, or shows none
  kObject,
  kText,
};

// How a template's input must differ from the API's form.
struct TemplateNeeds {
  ArgumentsForm arguments = ArgumentsForm::kAsGiven;
  bool text_content = false;          // a list of parts has to be joined
  bool part_content = false;          // a text has to become a list of one part
  bool empty_content = true;          // "" if the content is null or missing
  bool system_in_user = false;        // the system message is merged into the first user message
  bool system_for_developer = false;  // developer messages get the role system
  bool empty_tools = false;           // [] instead of null if there are no tools
  const char* reasoning_key = "reasoning_content";
  bool reasoning_without_content = false;  // with tool calls it takes only one of them
};

// For all the small conversations together. Templates in use take some thousand steps for each of
// about twenty, so this is fifty times what they need.
inline constexpr int64_t kProbeStepsMax = 5'000'000;
// kExhausted if that is not enough: the template's needs are then unknown.
Result<TemplateNeeds> probe_template(const ChatTemplate& chat_template);

// Returns `messages` unchanged unless they are a list of objects: the template then reports the
// error.
Json normalised_messages(const Json& messages, const TemplateNeeds& needs);

// `tools` may be null: none.
Json normalised_tools(const Json* tools, const TemplateNeeds& needs);

}  // namespace lockstep

// Messages as API clients send them, put into the form that a model's template reads. What a
// template needs is found by rendering small conversations once, when the model is loaded, not by
// knowing its name. Pure functions.
#pragma once

#include "chat/chat_template.h"
#include "json/json.h"

namespace lockstep {

// In which form a template takes the arguments of tool calls.
enum class ArgumentsForm {
  kAsGiven,  // both, or it shows none
  kObject,
  kText,
};

// What a template wants to be given instead of what the API says.
struct TemplateNeeds {
  ArgumentsForm arguments = ArgumentsForm::kAsGiven;
  bool text_content = false;          // a list of parts has to be joined
  bool part_content = false;          // a text has to become a list of one part
  bool empty_content = true;          // "" where the content is null or missing
  bool system_in_user = false;        // the first user message takes the system message in
  bool system_for_developer = false;  // a developer's message has the role system
  bool empty_tools = false;           // [] where there are no tools; others want null
  const char* reasoning_key = "reasoning_content";
  bool reasoning_without_content = false;  // with tool calls it takes only one of the two
};

TemplateNeeds probe_template(const ChatTemplate& chat_template);

// `messages` as they are where they are no list of objects: the template then says what is wrong.
Json normalised_messages(const Json& messages, const TemplateNeeds& needs);

// `tools` may be null: none.
Json normalised_tools(const Json* tools, const TemplateNeeds& needs);

}  // namespace lockstep

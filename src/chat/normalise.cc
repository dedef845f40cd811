#include "chat/normalise.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace lockstep {
namespace {

constexpr std::string_view kReasoningKeys[] = {"reasoning_content", "reasoning", "thinking"};

std::string_view string_of(const Json& json) {
  const auto& text = json.get_string();
  return {text.data(), text.size()};
}

bool is_text_part(const Json& part) {
  const Json* type = find(part, "type");
  const Json* text = find(part, "text");
  return text && text->is_string() && (!type || (type->is_string() && string_of(*type) == "text"));
}

bool all_text_parts(const Json& content) {
  if (!content.is_array()) return false;
  for (const Json& part : content.get_array()) {
    if (!is_text_part(part)) return false;
  }
  return true;
}

std::string joined_parts(const Json& content) {
  std::string text;
  for (const Json& part : content.get_array()) {
    if (!text.empty()) text += '\n';
    text += string_of(*find(part, "text"));
  }
  return text;
}

JsonArray one_part(std::string_view text) {
  return JsonArray{JsonObject{{"type", "text"}, {"text", text}}};
}

bool has_role(const Json& message, std::string_view role) {
  const Json* value = find(message, "role");
  return value && value->is_string() && string_of(*value) == role;
}

bool is_filled(const JsonObject& message, std::string_view key) {
  const Json* value = message.if_contains(key);
  if (!value || value->is_null()) return false;
  return !value->is_string() || !value->get_string().empty();
}

// Text that is not a JSON object, as a model may write, becomes the single argument "arguments": it
// must not make the conversation fail.
Json arguments_object(const Json& arguments) {
  if (!arguments.is_string()) return arguments;
  const std::string_view text = string_of(arguments);
  auto parsed = parse_untrusted_json(text.empty() ? "{}" : text);
  if (parsed.ok() && parsed.value().is_object()) return parsed.value();
  return JsonObject{{"arguments", text}};
}

void normalise_arguments(JsonObject& message, ArgumentsForm form) {
  Json* calls = message.if_contains("tool_calls");
  if (!calls || !calls->is_array() || form == ArgumentsForm::kAsGiven) return;
  for (Json& call : calls->get_array()) {
    Json* function = call.is_object() ? call.get_object().if_contains("function") : nullptr;
    if (!function || !function->is_object()) continue;
    Json* arguments = function->get_object().if_contains("arguments");
    if (!arguments) continue;
    if (form == ArgumentsForm::kObject) {
      *arguments = arguments_object(*arguments);
    } else if (!arguments->is_string()) {
      *arguments = dump_json(*arguments);
    }
  }
}

void normalise_content(JsonObject& message, const TemplateNeeds& needs) {
  Json& content = message["content"];
  if (content.is_null() && needs.empty_content) content = "";
  if (needs.text_content && all_text_parts(content)) content = joined_parts(content);
  if (needs.part_content && content.is_string()) content = one_part(string_of(content));
}

void normalise_reasoning(JsonObject& message, const TemplateNeeds& needs) {
  Json reasoning;
  for (const std::string_view key : kReasoningKeys) {
    if (reasoning.is_null() && is_filled(message, key)) reasoning = message.at(key);
    message.erase(key);
  }
  if (reasoning.is_null()) return;
  const Json* content = message.if_contains("content");
  const bool both = is_filled(message, "tool_calls") && is_filled(message, "content");
  if (both && needs.reasoning_without_content && content->is_string() && reasoning.is_string()) {
    reasoning = std::string(string_of(reasoning)) + "\n\n" + std::string(string_of(*content));
    message["content"] = "";
  }
  message[needs.reasoning_key] = reasoning;
}

// Merges the system message, a blank line and the first user message into one user message.
void fold_system(JsonArray& messages) {
  if (messages.empty() || !has_role(messages[0], "system")) return;
  const Json system = *find(messages[0], "content");
  if (!system.is_string()) return;
  messages.erase(messages.begin());
  if (system.get_string().empty()) return;
  for (Json& message : messages) {
    if (!has_role(message, "user")) continue;
    Json& content = message.get_object()["content"];
    if (content.is_string()) {
      content = std::string(string_of(system)) + "\n\n" + std::string(string_of(content));
    } else if (content.is_array()) {
      JsonArray parts = one_part(string_of(system));
      for (const Json& part : content.get_array()) parts.push_back(part);
      content = parts;
    }
    return;
  }
  messages.insert(messages.begin(), JsonObject{{"role", "user"}, {"content", system}});
}

// ---- probes

// Words that do not occur in any template.
constexpr std::string_view kMark = "qzx7mark";
constexpr std::string_view kArgumentsText = R"({"qzx7key": "qzx7mark"})";
constexpr std::string_view kPrintedByPython = "'qzx7key': 'qzx7mark'";
constexpr std::string_view kPrintedAsJson[] = {R"("qzx7key": "qzx7mark")",
                                               R"("qzx7key":"qzx7mark")"};

class Prober {
 public:
  explicit Prober(const ChatTemplate& chat_template) : chat_template_(chat_template) {}

  // The template's output, empty if it fails.
  std::string print(const JsonArray& messages, bool add_generation_prompt = true) const {
    static const Json kTools = JsonArray{JsonObject{
        {"type", "function"},
        {"function",
         {{"name", "qzx7tool"},
          {"description", "A tool."},
          {"parameters",
           {{"type", "object"},
            {"properties", {{"qzx7key", {{"type", "string"}, {"description", "A key."}}}}},
            {"required", JsonArray{"qzx7key"}}}}}}}};
    return print(messages, &kTools, add_generation_prompt);
  }

  std::string print(const JsonArray& messages, const Json* tools,
                    bool add_generation_prompt = true) const {
    static const JsonObject kTokens = {{"bos_token", ""}, {"eos_token", ""}};
    const Json wrapped = messages;
    ChatTemplateInput input;
    input.messages = &wrapped;
    input.tools = tools;
    input.model_variables = &kTokens;
    input.add_generation_prompt = add_generation_prompt;
    input.now.tm_mday = 1;
    input.now.tm_year = 125;
    input.steps_left = &steps_left_;
    auto pieces = chat_template_.render(input);
    return pieces.ok() ? prompt_text(pieces.value()) : std::string();
  }

  bool shows(const JsonArray& messages, bool add_generation_prompt = true) const {
    return print(messages, add_generation_prompt).find(kMark) != std::string::npos;
  }

  // Whether the output is meaningful: fails if the steps ran out.
  Status check() const {
    if (steps_left_ >= 0) return Ok{};
    return Error{
        ErrorCode::kExhausted,
        fmt::format("the chat template needs more than {} steps for a few short conversations",
                    kProbeStepsMax)};
  }

 private:
  const ChatTemplate& chat_template_;
  mutable int64_t steps_left_ = kProbeStepsMax;
};

JsonObject message(std::string_view role, const Json& content) {
  return JsonObject{{"role", role}, {"content", content}};
}

// user, assistant with one call, its result.
JsonArray conversation_with_call(const Json& content, const Json& arguments,
                                 const TemplateNeeds& needs) {
  JsonObject assistant = message("assistant", content);
  assistant["tool_calls"] =
      JsonArray{JsonObject{{"id", "abcdef123"},
                           {"type", "function"},
                           {"function", {{"name", "qzx7tool"}, {"arguments", arguments}}}}};
  JsonObject result = message("tool", needs.part_content ? Json(one_part("1")) : Json("1"));
  result["tool_call_id"] = "abcdef123";
  result["name"] = "qzx7tool";
  const Json question = needs.part_content ? Json(one_part("a")) : Json("a");
  return JsonArray{message("user", question), assistant, result};
}

ArgumentsForm probe_arguments(const Prober& prober, const TemplateNeeds& needs) {
  const Json content = needs.part_content ? Json(one_part("b")) : Json("");
  const std::string with_object =
      prober.print(conversation_with_call(content, JsonObject{{"qzx7key", kMark}}, needs));
  const std::string with_text =
      prober.print(conversation_with_call(content, Json(kArgumentsText), needs));
  const bool takes_object = with_object.find(kMark) != std::string::npos &&
                            with_object.find(kPrintedByPython) == std::string::npos;
  const bool takes_text = with_text.find(kArgumentsText) != std::string::npos;
  if (!takes_object && !takes_text) return ArgumentsForm::kAsGiven;
  const auto is_shown = [&](std::string_view json) {
    return with_object.find(json) != std::string::npos;
  };
  const bool is_json = std::any_of(std::begin(kPrintedAsJson), std::end(kPrintedAsJson), is_shown);
  // A template that writes objects in another notation prints texts unchanged, which is wrong then.
  if (takes_object && takes_text && is_json) return ArgumentsForm::kAsGiven;
  return takes_object ? ArgumentsForm::kObject : ArgumentsForm::kText;
}

Json arguments_for(const TemplateNeeds& needs) {
  if (needs.arguments == ArgumentsForm::kText) return Json("{}");
  return JsonObject{{"qzx7key", "1"}};
}

void probe_reasoning(const Prober& prober, TemplateNeeds& needs) {
  const Json question = needs.part_content ? Json(one_part("a")) : Json("a");
  const Json answer = needs.part_content ? Json(one_part("b")) : Json("b");
  for (const char* key : {"reasoning_content", "thinking", "reasoning"}) {
    JsonObject last = message("assistant", answer);
    last[key] = kMark;
    JsonArray with_call = conversation_with_call(Json(""), arguments_for(needs), needs);
    with_call[1].get_object()[key] = kMark;
    const bool shown =
        prober.shows({message("user", question), last}, false) || prober.shows(with_call);
    if (!shown) continue;
    needs.reasoning_key = key;
    with_call[1].get_object()["content"] = answer;
    const bool alone = prober.shows(with_call);
    with_call[1].get_object().erase(key);
    needs.reasoning_without_content = !alone && !prober.print(with_call).empty();
    return;
  }
}

}  // namespace

Result<TemplateNeeds> probe_template(const ChatTemplate& chat_template) {
  const Prober prober(chat_template);
  TemplateNeeds needs;
  const Json text(kMark);
  const Json parts(one_part(kMark));
  const std::string from_parts = prober.print({message("user", parts)});
  const bool takes_text = prober.shows({message("user", text)});
  const bool takes_parts = from_parts.find(kMark) != std::string::npos &&
                           from_parts.find("'type'") == std::string::npos &&
                           from_parts.find("\"type\": \"text\"") == std::string::npos;
  needs.text_content = takes_text && !takes_parts;
  needs.part_content = takes_parts && !takes_text;

  const Json question = needs.part_content ? Json(one_part("a")) : Json("a");
  const Json instruction = needs.part_content ? parts : text;
  needs.system_in_user = !prober.shows({message("system", instruction), message("user", question)});
  needs.system_for_developer =
      !prober.shows({message("developer", instruction), message("user", question)});
  const Json no_tools = JsonArray();
  needs.empty_tools = prober.print({message("user", question)}, nullptr).empty() &&
                      !prober.print({message("user", question)}, &no_tools).empty();
  needs.arguments = probe_arguments(prober, needs);
  const Json arguments = arguments_for(needs);
  needs.empty_content = !prober.print(conversation_with_call(Json(""), arguments, needs)).empty() ||
                        prober.print(conversation_with_call(Json(), arguments, needs)).empty();
  probe_reasoning(prober, needs);
  TRY(prober.check());
  return needs;
}

Json normalised_messages(const Json& messages, const TemplateNeeds& needs) {
  if (!messages.is_array()) return messages;
  JsonArray result = messages.get_array();
  for (Json& entry : result) {
    if (!entry.is_object()) return messages;
    JsonObject& fields = entry.get_object();
    if (needs.system_for_developer && has_role(entry, "developer")) fields["role"] = "system";
    normalise_content(fields, needs);
    normalise_arguments(fields, needs.arguments);
    normalise_reasoning(fields, needs);
  }
  if (needs.system_in_user) fold_system(result);
  return result;
}

Json normalised_tools(const Json* tools, const TemplateNeeds& needs) {
  const bool none = !tools || tools->is_null() || (tools->is_array() && tools->get_array().empty());
  if (!none) return *tools;
  return needs.empty_tools ? Json(JsonArray()) : Json();
}

}  // namespace lockstep

#include "cli/talk/dialogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/double_chars.h"
#include "cli/text/code_fence.h"

namespace lockstep {
namespace {

struct TalkOption {
  std::string_view name;
  bool is_whole;
  double least;
  double most;
};

// Ranges of docs/http-api.md; the node checks them too.
constexpr std::array kTalkOptions = std::to_array<TalkOption>({
    {"temperature", false, 0, 2},
    {"top_p", false, 0, 1},
    {"top_k", true, 0, 2147483647},
    {"min_p", false, 0, 1},
    {"typical_p", false, 0, 1},
    {"repetition_penalty", false, 0, 100},
    {"presence_penalty", false, -2, 2},
    {"frequency_penalty", false, -2, 2},
    {"max_tokens", true, 1, 2147483647},
    {"seed", true, 0, 9e15},
});

JsonObject role_message(std::string_view role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

// A template variable for on and off, which most families have in one of these two names; an effort
// otherwise.
void add_thinking(JsonObject& body, const std::string& thinking) {
  if (thinking.empty()) return;
  if (thinking != "on" && thinking != "off") {
    body["reasoning_effort"] = thinking;
    return;
  }
  const bool is_on = thinking == "on";
  body["chat_template_kwargs"] = JsonObject{{"enable_thinking", is_on}, {"thinking", is_on}};
}

}  // namespace

std::optional<std::string> Dialogue::take_back() {
  while (!messages_.empty()) {
    TalkMessage last = std::move(messages_.back());
    messages_.pop_back();
    if (!last.is_answer) return std::move(last.content);
  }
  return std::nullopt;
}

const TalkMessage* Dialogue::last_answer() const {
  const auto last = std::find_if(messages_.rbegin(), messages_.rend(),
                                 [](const TalkMessage& message) { return message.is_answer; });
  return last == messages_.rend() ? nullptr : &*last;
}

JsonArray Dialogue::request_messages() const {
  JsonArray list;
  if (!system.empty()) list.push_back(role_message("system", system));
  for (const TalkMessage& message : messages_) {
    JsonObject json = role_message(message.is_answer ? "assistant" : "user", message.content);
    if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
    list.push_back(std::move(json));
  }
  return list;
}

std::string Dialogue::plain_text() const {
  std::string text = system;
  for (const TalkMessage& message : messages_) {
    if (!text.empty()) text += '\n';
    text += message.content;
  }
  return text;
}

std::string Dialogue::saved() const {
  return dump_json(JsonObject{{"format", kFormat},
                              {"model", model},
                              {"system", system},
                              {"messages", request_messages()}}) +
         "\n";
}

Result<Dialogue> Dialogue::parse(std::string_view text) {
  const auto json = parse_untrusted_json(text);
  const Error bad{ErrorCode::kCorrupt, "it is not a conversation that `/save` has written"};
  if (!json.ok() || !json.value().is_object()) return bad;
  const auto format = TRY(get_string(json.value(), "format"));
  const Json* messages = find(json.value(), "messages");
  if (format != kFormat || messages == nullptr || !messages->is_array()) return bad;
  Dialogue read;
  read.model = TRY(get_string(json.value(), "model")).value_or("");
  read.system = TRY(get_string(json.value(), "system")).value_or("");
  for (const Json& message : messages->get_array()) {
    if (!message.is_object()) return bad;
    const auto role = TRY(get_string(message, "role")).value_or("");
    auto content = TRY(get_string(message, "content")).value_or("");
    if (role == "user") read.ask(std::move(content));
    if (role != "assistant") continue;
    auto reasoning = TRY(get_string(message, "reasoning_content")).value_or("");
    read.answer(std::move(content), std::move(reasoning));
  }
  return read;
}

std::string Dialogue::markdown() const {
  std::string text = fmt::format("# {}\n", model.empty() ? "Conversation" : model);
  if (!system.empty()) text += fmt::format("\n## System\n\n{}\n", system);
  for (const TalkMessage& message : messages_) {
    text +=
        fmt::format("\n## {}\n\n{}\n", message.is_answer ? "Answer" : "Question", message.content);
  }
  return text;
}

std::vector<std::string_view> talk_option_names() {
  std::vector<std::string_view> names;
  for (const TalkOption& option : kTalkOptions) names.push_back(option.name);
  names.push_back("stop");
  return names;
}

bool is_think_value(std::string_view text) {
  return std::find(kThinkValues.begin(), kThinkValues.end(), text) != kThinkValues.end();
}

Result<Json> parse_talk_option(std::string_view name, std::string_view value) {
  if (name == "stop") return Json(value);
  const auto* option = std::find_if(kTalkOptions.begin(), kTalkOptions.end(),
                                    [&](const TalkOption& one) { return one.name == name; });
  if (option == kTalkOptions.end()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is no option {}; there are {}", name,
                             fmt::join(talk_option_names(), ", "))};
  }
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto parsed = double_from_chars(value.data(), end, number);
  const bool is_number = parsed.ec == std::errc() && parsed.ptr == end && std::isfinite(number);
  const bool is_right = is_number && number >= option->least && number <= option->most &&
                        (!option->is_whole || number == std::floor(number));
  if (!is_right) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is a {}number from {} to {}, not {}", name,
                             option->is_whole ? "whole " : "", option->least, option->most, value)};
  }
  return option->is_whole ? Json(static_cast<int64_t>(number)) : Json(number);
}

std::string talk_options_text(const JsonObject& options) {
  std::string text;
  for (const auto& [name, value] : options) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", std::string_view(name), dump_json(value));
  }
  return text;
}

JsonObject talk_request_body(const Dialogue& conversation, const TalkSettings& settings,
                             bool is_completion, int64_t context) {
  JsonObject body{
      {"model", conversation.model},
      {"stream", true},
      {"stream_options",
       JsonObject{{"include_usage", true}, {"include_timings", true}, {"include_progress", true}}}};
  for (const auto& [name, value] : settings.options) body[name] = value;
  if (is_completion) {
    body["prompt"] = conversation.plain_text();
    if (!body.contains("max_tokens") && context > 0) body["max_tokens"] = context;
    return body;
  }
  body["messages"] = conversation.request_messages();
  add_thinking(body, settings.thinking);
  if (settings.schema) {
    body["response_format"] = JsonObject{
        {"type", "json_schema"},
        {"json_schema",
         JsonObject{{"name", "answer"}, {"schema", *settings.schema}, {"strict", true}}}};
  }
  return body;
}

std::optional<std::string> first_code_block(std::string_view markdown) {
  std::optional<std::string> block;
  std::string_view opening;
  while (!markdown.empty()) {
    const size_t end = std::min(markdown.find('\n'), markdown.size());
    const std::string_view line = markdown.substr(0, end);
    markdown.remove_prefix(std::min(end + 1, markdown.size()));
    const auto fence = code_fence(line);
    if (!block) {
      if (!fence) continue;
      opening = fence->marks;
      block.emplace();
    } else if (fence && fence->closes(opening)) {
      return block;
    } else {
      *block += line;
      *block += '\n';
    }
  }
  return block;  // the answer was cut off inside it
}

}  // namespace lockstep

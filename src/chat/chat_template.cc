#include "chat/chat_template.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "chat/jinja/jinja_interpreter.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja_syntax/jinja_parser.h"

namespace lockstep {
namespace {

constexpr std::pair<std::string_view, jinja::Function> kTemplateFunctions[] = {
    {"raise_exception", jinja::Function::kRaiseException},
    {"strftime_now", jinja::Function::kStrftimeNow},
    {"namespace", jinja::Function::kNamespace},
    {"range", jinja::Function::kRange},
    {"dict", jinja::Function::kDict},
};

// Templates build special tokens from roles ("<|" + role + "|>"), so these words do not count as
// input.
constexpr std::string_view kRoles[] = {"system",    "developer", "user",
                                       "assistant", "tool",      "function"};

jinja::Value message_value(jinja::Heap& heap, const Json& message, const JsonTexts* texts) {
  if (!message.is_object()) return from_json_value(heap, message, true);
  const jinja::Value result = heap.dict();
  for (const auto& field : message.get_object()) {
    const std::string_view key(field.key().data(), field.key().size());
    jinja::Value value = from_json_value(heap, field.value(), true, texts);
    const bool role =
        key == "role" && value.is(jinja::Kind::kText) &&
        std::find(std::begin(kRoles), std::end(kRoles), value.as_string()) != std::end(kRoles);
    if (role) value = heap.text(value.as_string(), false);
    result.dict->set(heap.text(key, true), value);
  }
  return result;
}

jinja::Value messages_value(jinja::Heap& heap, const Json& messages, const JsonTexts* texts) {
  if (!messages.is_array()) return from_json_value(heap, messages, true);
  std::vector<jinja::Value> items;
  for (const Json& message : messages.get_array())
    items.push_back(message_value(heap, message, texts));
  return heap.list(std::move(items));
}

const Json* find_variable(const JsonObject* variables, std::string_view name) {
  return variables ? variables->if_contains(name) : nullptr;
}

// The value of a variable that the template names; nullopt if the request does not set it.
std::optional<jinja::Value> variable_value(jinja::Heap& heap, const ChatTemplateInput& input,
                                           std::string_view name) {
  if (name == "messages") return messages_value(heap, *input.messages, input.json_texts);
  if (name == "tools") {
    return input.tools ? from_json_value(heap, *input.tools, true) : jinja::Value();
  }
  if (const Json* value = find_variable(input.request_variables, name)) {
    return from_json_value(heap, *value, true);
  }
  if (const Json* value = find_variable(input.model_variables, name)) {
    return from_json_value(heap, *value, false);
  }
  if (name == "add_generation_prompt") return jinja::Value::boolean(input.add_generation_prompt);
  if (name == "documents") return jinja::Value();
  for (const auto& function : kTemplateFunctions) {
    if (function.first == name) return jinja::Value::of(function.second);
  }
  return std::nullopt;
}

bool is_leap(int year) {
  return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

constexpr int kDaysBefore[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};

}  // namespace

ChatTemplate::ChatTemplate(std::shared_ptr<const jinja::Program> program)
    : program_(std::move(program)) {}

Result<ChatTemplate> ChatTemplate::parse(std::string_view source) {
  return ChatTemplate(TRY(jinja::parse_template(source)));
}

Result<std::vector<PromptPiece>> ChatTemplate::render(const ChatTemplateInput& input) const {
  LOCKSTEP_CHECK(input.messages);
  jinja::Limits limits;
  if (input.steps_left != nullptr) limits.steps = std::min(limits.steps, *input.steps_left);
  jinja::Interpreter interpreter(*program_, input.now, limits);
  for (size_t name = 0; name < program_->names.size(); ++name) {
    const auto value = variable_value(interpreter.heap(), input, program_->names[name]);
    if (value) interpreter.set_variable(static_cast<uint32_t>(name), *value);
  }
  const auto rendered = interpreter.render();
  if (input.steps_left != nullptr) {
    *input.steps_left -= limits.steps - interpreter.heap().steps_left();
  }
  return TRY(rendered).pieces();
}

std::string prompt_text(const std::vector<PromptPiece>& pieces) {
  std::string text;
  for (const PromptPiece& piece : pieces) text += piece.text;
  return text;
}

std::tm local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm result = {};
  localtime_r(&now, &result);
  return result;
}

Result<std::tm> parse_time(std::string_view text) {
  const Error bad{ErrorCode::kInvalidArgument,
                  fmt::format("\"{}\" is not a time such as 2025-09-07T08:05:03", text)};
  constexpr std::string_view kPattern = "####-##-##T##:##:##";
  std::array<int, 6> fields = {};
  size_t field = 0;
  if (text.size() < kPattern.size()) return bad;
  for (size_t i = 0; i < kPattern.size(); ++i) {
    if (kPattern[i] != '#') {
      if (text[i] != kPattern[i] && !(kPattern[i] == 'T' && text[i] == ' ')) return bad;
      ++field;
    } else if (text[i] < '0' || text[i] > '9') {
      return bad;
    } else {
      fields[field] = fields[field] * 10 + (text[i] - '0');
    }
  }
  const auto [year, month, day, hour, minute, second] = fields;
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > 31) return bad;
  if (hour > 23 || minute > 59 || second > 59) return bad;
  std::tm result = {};
  result.tm_year = year - 1900;
  result.tm_mon = month - 1;
  result.tm_mday = day;
  result.tm_hour = hour;
  result.tm_min = minute;
  result.tm_sec = second;
  result.tm_yday = kDaysBefore[month - 1] + day - 1 + (month > 2 && is_leap(year) ? 1 : 0);
  const int before = year - 1;  // 1 January of the year 1 was a Monday
  result.tm_wday = (1 + before + before / 4 - before / 100 + before / 400 + result.tm_yday) % 7;
  return result;
}

}  // namespace lockstep

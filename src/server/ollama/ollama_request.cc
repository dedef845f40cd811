#include "server/ollama/ollama_request.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <utility>

#include "base/double_chars.h"
#include "server/chat/chat_messages.h"
#include "server/ollama/ollama_messages.h"
#include "server/ollama/ollama_options.h"
#include "server/openai/openai_embeddings.h"

namespace lockstep {
namespace {

// The units of Go's time.ParseDuration.
struct DurationUnit {
  std::string_view name;
  double seconds;
};
constexpr DurationUnit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"ms", 1e-3},
                                   {"h", 3600},  {"m", 60},    {"s", 1}};

const DurationUnit* unit_at(std::string_view text) {
  for (const DurationUnit& unit : kUnits) {
    if (text.starts_with(unit.name)) return &unit;
  }
  return nullptr;
}

// Removes a number, perhaps with a decimal point, from the text; nullopt if there is none.
std::optional<double> take_number(std::string_view& text) {
  const size_t length = std::min(text.find_first_not_of("0123456789."), text.size());
  double number = 0;
  const auto parsed = double_from_chars(text.data(), text.data() + length, number);
  if (length == 0 || parsed.ec != std::errc() || parsed.ptr != text.data() + length) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return number;
}

std::optional<double> duration_s(std::string_view text) {
  double sign = 1;
  if (text.starts_with('-') || text.starts_with('+')) {
    if (text.front() == '-') sign = -1;
    text.remove_prefix(1);
  }
  if (text == "0") return 0;
  double sum = 0;
  do {
    const auto number = take_number(text);
    const DurationUnit* unit = number ? unit_at(text) : nullptr;
    if (unit == nullptr) return std::nullopt;
    sum += *number * unit->seconds;
    text.remove_prefix(unit->name.size());
  } while (!text.empty());
  return sign * sum;
}

// Longer than any process lives counts as forever.
std::chrono::milliseconds kept_for(double seconds) {
  constexpr double kLongest = 1e10;
  if (seconds < 0 || seconds > kLongest) return std::chrono::milliseconds(-1);
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(seconds * 1000)));
}

// Levels of thinking that the template does not know are ignored, as in Ollama.
ApiResult<Ok> read_think(RequestFields& fields, ChatRequest& chat) {
  chat.reasoning_is_hint = true;
  const Json* value = fields.get("think");
  if (value == nullptr) return Ok{};
  if (value->is_bool()) {
    chat.thinks = value->get_bool();
    return Ok{};
  }
  const std::string level = value->is_string() ? std::string(value->get_string()) : "";
  if (level != "low" && level != "medium" && level != "high") {
    return bad_field("think", "\"think\" must be true, false, \"low\", \"medium\" or \"high\"");
  }
  chat.thinks = true;
  chat.reasoning_effort = level;
  return Ok{};
}

// Fields of both chat and generate that lockstep does not support.
ApiResult<Ok> refuse_unsupported(RequestFields& fields) {
  TRY(fields.refuse("logprobs", {Json(false)}));
  TRY(fields.refuse("top_logprobs", {Json(0)}));
  // A conversation that does not fit is always refused: nothing is dropped silently.
  TRY(fields.refuse("truncate", {Json(false)}));
  TRY(fields.refuse("shift", {Json(false)}));
  return Ok{};
}

// "json" or a schema, converted to OpenAI's response_format. Parts of a schema that cannot be
// enforced are reported and not refused, as with OpenAI's non-strict schemas.
ApiResult<Ok> read_format(RequestFields& fields, OllamaRequest& request) {
  const Json* format = fields.get("format");
  if (format == nullptr || *format == Json("")) return Ok{};
  if (request.text) {
    return bad_field("format", "\"format\" cannot be combined with \"raw\" or \"suffix\"");
  }
  JsonObject wanted{{"type", "json_object"}};
  if (format->is_object()) {
    wanted = {{"type", "json_schema"},
              {"json_schema", JsonObject{{"name", "format"}, {"schema", *format}}}};
  } else if (*format != Json("json")) {
    return bad_field("format", "\"format\" must be \"json\" or a JSON schema");
  }
  const JsonObject outer{{"response_format", std::move(wanted)}};
  RequestFields inner(outer);
  auto answer = parse_answer_form(inner);
  if (!answer.ok()) {
    answer.error().param = "format";
    return answer.error();
  }
  request.chat.constraint.answer = std::move(answer.value());
  return Ok{};
}

ApiResult<Ok> read_tools(RequestFields& fields, ChatRequest& chat) {
  chat.tools = TRY(parse_tools(fields.get("tools")));
  const JsonObject none;
  RequestFields choice(none);
  chat.constraint = TRY(parse_tool_choice(choice, chat.tools));
  return Ok{};
}

ApiResult<std::optional<std::chrono::milliseconds>> read_keep_alive(RequestFields& fields) {
  const Json* keep_alive = fields.get("keep_alive");
  if (keep_alive == nullptr) return std::optional<std::chrono::milliseconds>();
  return std::optional(TRY(parse_keep_alive(*keep_alive)));
}

void add_ignored(const RequestFields& fields, GenerationOptions& options) {
  for (std::string& name : fields.ignored()) options.ignored.push_back(std::move(name));
}

ApiResult<Ok> read_prompt(RequestFields& fields, OllamaRequest& request) {
  const std::string prompt = TRY(fields.text("prompt")).value_or("");
  const std::string system = TRY(fields.text("system")).value_or("");
  const std::string suffix = TRY(fields.text("suffix")).value_or("");
  const bool is_raw = TRY(fields.boolean("raw")).value_or(false);
  request.is_empty = prompt.empty() && suffix.empty();
  request.keep_alive = TRY(read_keep_alive(fields));
  if (!suffix.empty()) request.suffix = suffix;
  if (is_raw || request.suffix) {
    if (!system.empty()) {
      return bad_field("system",
                       "\"system\" needs the model's template: not with \"raw\" or "
                       "\"suffix\"");
    }
    request.text = prompt;
    return Ok{};
  }
  JsonArray messages;
  if (!system.empty()) messages.push_back(JsonObject{{"role", "system"}, {"content", system}});
  messages.push_back(JsonObject{{"role", "user"}, {"content", prompt}});
  request.chat.messages = Json(std::move(messages));
  return Ok{};
}

ApiResult<std::string> required_model(RequestFields& fields) {
  std::string model = TRY(fields.text("model")).value_or("");
  if (model.empty()) model = TRY(fields.text("name")).value_or("");
  if (model.empty()) {
    return missing_field("model");
  }
  return model;
}

}  // namespace

ApiResult<std::chrono::milliseconds> parse_keep_alive(const Json& value) {
  if (value.is_string()) {
    if (const auto seconds = duration_s(value.get_string())) return kept_for(*seconds);
  } else if (value.is_int64()) {
    return kept_for(static_cast<double>(value.get_int64()));
  } else if (value.is_double()) {
    return kept_for(value.get_double());
  }
  return bad_field("keep_alive",
                   "\"keep_alive\" must be a number of seconds or a duration such as \"5m\"");
}

ApiResult<OllamaRequest> parse_ollama_chat(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  OllamaRequest request;
  request.chat.options = TRY(parse_ollama_options(fields));
  const Json messages = TRY(openai_messages(fields.get("messages")));
  const bool is_empty = messages.get_array().empty();
  if (!is_empty) request.chat.messages = TRY(parse_messages(&messages));
  TRY(read_tools(fields, request.chat));
  TRY(read_format(fields, request));
  TRY(read_think(fields, request.chat));
  request.is_empty = is_empty;
  request.keep_alive = TRY(read_keep_alive(fields));
  TRY(refuse_unsupported(fields));
  add_ignored(fields, request.chat.options);
  return request;
}

ApiResult<OllamaRequest> parse_ollama_generate(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  OllamaRequest request;
  request.chat.options = TRY(parse_ollama_options(fields));
  TRY(refuse_images(fields.get("images"), "images"));
  TRY(read_prompt(fields, request));
  TRY(read_format(fields, request));
  TRY(read_think(fields, request.chat));
  // Model templates are Jinja here and not Go's, and earlier turns belong in messages.
  TRY(fields.refuse("template", {Json("")}));
  TRY(fields.refuse("context", {Json(JsonArray())}));
  TRY(refuse_unsupported(fields));
  add_ignored(fields, request.chat.options);
  return request;
}

ApiResult<OllamaEmbedRequest> parse_ollama_embed(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  OllamaEmbedRequest request;
  request.model = TRY(required_model(fields));
  const Json* input = fields.get("input");
  const ApiError no_texts = bad_field("input", "\"input\" must be a string or an array of strings");
  if (input == nullptr) return no_texts;
  if (input->is_string()) {
    if (!input->get_string().empty()) request.inputs.emplace_back(input->get_string());
  } else {
    if (!input->is_array()) return no_texts;
    if (input->get_array().size() > kEmbeddingInputsMax) {
      return bad_field("input",
                       fmt::format("\"input\" may have at most {} texts", kEmbeddingInputsMax));
    }
    for (const Json& text : input->get_array()) {
      if (!text.is_string()) return no_texts;
      request.inputs.emplace_back(text.get_string());
    }
  }
  request.truncates = TRY(fields.boolean("truncate")).value_or(true);
  const auto dimensions = TRY(fields.integer("dimensions", 0, kEmbeddingDimensionsMax));
  if (dimensions && *dimensions > 0) request.dimensions = static_cast<int>(*dimensions);
  request.keep_alive = TRY(read_keep_alive(fields));
  [[maybe_unused]] const JsonObject* options = TRY(fields.object("options"));
  request.ignored = fields.ignored();
  return request;
}

ApiResult<OllamaEmbedRequest> parse_ollama_embeddings(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  OllamaEmbedRequest request;
  request.is_single = true;
  request.model = TRY(required_model(fields));
  const std::string prompt = TRY(fields.text("prompt")).value_or("");
  if (!prompt.empty()) request.inputs.push_back(prompt);
  request.keep_alive = TRY(read_keep_alive(fields));
  [[maybe_unused]] const JsonObject* options = TRY(fields.object("options"));
  request.ignored = fields.ignored();
  return request;
}

ApiResult<std::string> parse_ollama_model(std::string_view body) {
  const Json json = TRY(parse_body(body));
  RequestFields fields(json.get_object());
  return required_model(fields);
}

}  // namespace lockstep

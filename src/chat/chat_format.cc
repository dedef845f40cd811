#include "chat/chat_format.h"

#include <utility>

#include "chat/template_facts.h"
#include "chat/text/pending_text.h"
#include "chat/tool_instructions.h"

namespace lockstep {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";

// The text of the message that ends the prompt: its content, or the last text part.
Result<std::string> final_text(const Json& messages) {
  const Error none{ErrorCode::kInvalidArgument,
                   "the last message has no text that could be continued"};
  if (!messages.is_array() || messages.get_array().empty()) return none;
  const Json* content = find(messages.get_array().back(), "content");
  if (content && content->is_array() && !content->get_array().empty()) {
    content = find(content->get_array().back(), "text");
  }
  if (!content || !content->is_string()) return none;
  std::string text(content->get_string());
  if (text.find_first_not_of(kSpace) == std::string::npos) return none;
  return text;
}

// Text that a template writes after the last message: the end of a turn.
constexpr size_t kBehindBytesMax = 256;

// Where `needle` last ends in a byte of the conversation: the same words may also occur in the
// template's text after the message.
std::optional<size_t> last_end(const MarkedText& prompt, std::string_view needle) {
  const std::string_view text = prompt.text();
  for (size_t behind = 0; behind <= kBehindBytesMax; ++behind) {
    if (text.size() < needle.size() + behind) break;
    const size_t end = text.size() - behind;
    if (text.substr(end - needle.size(), needle.size()) != needle) continue;
    if (prompt.is_from_input(end - 1)) return end;
  }
  return std::nullopt;
}

// Cuts after the last message's text, as transformers does. Templates may trim the text; if not,
// its trailing spaces stay.
Result<std::vector<PromptPiece>> cut_after(const std::vector<PromptPiece>& pieces,
                                           const std::string& text) {
  MarkedText prompt;
  for (const PromptPiece& piece : pieces) prompt.append(piece.text, piece.is_from_input);
  const size_t first = text.find_first_not_of(kSpace);
  const size_t last = text.find_last_not_of(kSpace);
  auto end = last_end(prompt, std::string_view(text).substr(first, last + 1 - first));
  if (!end) {
    return Error{ErrorCode::kInvalidArgument,
                 "the chat template changes the last message, so it cannot be continued"};
  }
  const std::string_view space = std::string_view(text).substr(last + 1);
  if (std::string_view(prompt.text()).substr(*end, space.size()) == space) *end += space.size();
  return prompt.part(0, *end).pieces();
}

// Whether the template's own text ends with a marker.
bool ends_with(const std::vector<PromptPiece>& prompt, std::string_view marker) {
  if (marker.empty() || prompt.empty() || prompt.back().is_from_input) return false;
  return without_blanks(prompt.back().text).ends_with(marker);
}

// The arguments of a call as the model wrote them, if they are known: replaces a text in place, or
// is returned for an object.
std::optional<std::string> sampled_arguments(Json& call, const SampledCalls& sampled) {
  const Json* id = find(call, "id");
  Json* function = call.is_object() ? call.get_object().if_contains("function") : nullptr;
  if (!id || !id->is_string() || !function || !function->is_object()) return std::nullopt;
  Json* arguments = function->get_object().if_contains("arguments");
  if (!arguments) return std::nullopt;
  if (arguments->is_object()) return sampled.find(id->get_string(), *arguments);
  if (!arguments->is_string()) return std::nullopt;
  const auto value = parse_untrusted_json(arguments->get_string());
  const auto text = value.ok() ? sampled.find(id->get_string(), value.value()) : std::nullopt;
  if (text) *arguments = *text;
  return std::nullopt;
}

JsonTexts sampled_texts(Json& messages, const SampledCalls& sampled) {
  JsonTexts texts;
  if (!messages.is_array()) return texts;
  for (Json& message : messages.get_array()) {
    Json* calls = message.is_object() ? message.get_object().if_contains("tool_calls") : nullptr;
    if (!calls || !calls->is_array()) continue;
    for (Json& call : calls->get_array()) {
      if (auto text = sampled_arguments(call, sampled)) {
        texts.emplace(&call.at("function").at("arguments").get_object(), std::move(*text));
      }
    }
  }
  return texts;
}

}  // namespace

ChatFormat::ChatFormat(const TemplateSource& source) : text_(source.text + source.tool_text) {
  const std::string& with_tools = source.tool_text.empty() ? source.text : source.tool_text;
  const TemplateFacts facts = template_facts(with_tools);
  tool_format_ = find_tool_format(facts.tool_format);
  knows_tools_ = tool_format_ != nullptr || facts.takes_tools;
}

Result<std::shared_ptr<const ChatFormat>> ChatFormat::parse(const TemplateSource& source) {
  ModelTemplate model = TRY(parse_model_template(source));
  std::shared_ptr<ChatFormat> format(new ChatFormat(source));
  format->tokens_ = std::move(model.tokens);
  const TemplateNeeds needs = TRY(probe_template(model.chat_template));
  format->variants_.push_back({std::move(model.chat_template), needs});
  if (model.tool_template) {
    const TemplateNeeds tool_needs = TRY(probe_template(*model.tool_template));
    format->variants_.push_back({std::move(*model.tool_template), tool_needs});
  }
  return std::shared_ptr<const ChatFormat>(std::move(format));
}

const ToolFormat* ChatFormat::tool_format(bool has_tools) const {
  if (tool_format_ != nullptr) return tool_format_;
  const ToolFormat* generic = find_tool_format("generic");
  return has_tools || mentions(generic->reasoning_begin) ? generic : nullptr;
}

bool ChatFormat::opens_reasoning(const std::vector<PromptPiece>& prompt) const {
  const ToolFormat* format = tool_format(false);
  return format != nullptr && ends_with(prompt, format->reasoning_begin);
}

bool ChatFormat::closes_reasoning(const std::vector<PromptPiece>& prompt) const {
  const ToolFormat* format = tool_format(false);
  return format != nullptr && ends_with(prompt, format->reasoning_end);
}

Result<std::vector<PromptPiece>> ChatFormat::write(const ChatInput& input) const {
  if (input.tools && !knows_tools_) {
    const Json told = with_tools_as_text(*input.messages, *input.tools);
    ChatInput plain = input;
    plain.messages = &told;
    plain.tools = nullptr;
    return write(plain);
  }
  const Variant& variant = input.tools ? variants_.back() : variants_.front();
  Json messages = normalised_messages(*input.messages, variant.needs);
  const JsonTexts texts = input.sampled ? sampled_texts(messages, *input.sampled) : JsonTexts();
  const Json tools = normalised_tools(input.tools, variant.needs);
  ChatTemplateInput rendered;
  rendered.messages = &messages;
  rendered.json_texts = &texts;
  rendered.tools = &tools;
  rendered.model_variables = &tokens_;
  rendered.request_variables = input.variables;
  rendered.add_generation_prompt = input.add_generation_prompt && !input.continue_final_message;
  rendered.now = input.now;
  auto pieces = variant.chat_template.render(rendered);
  if (!pieces.ok() || !input.continue_final_message) return pieces;
  return cut_after(pieces.value(), TRY(final_text(messages)));
}

}  // namespace lockstep

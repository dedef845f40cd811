#include "server/chat/chat_prompt.h"

#include <utility>

namespace lockstep {
namespace {

std::string message_text(const Json* content) {
  std::string text;
  if (!content) return text;
  if (content->is_string()) return std::string(content->get_string());
  if (!content->is_array()) return text;
  for (const Json& part : content->get_array()) text += message_text(find(part, "text"));
  return text;
}

}  // namespace

Result<ChatPrompt> chat_prompt(const ModelService& model, const ChatInput& input) {
  const std::shared_ptr<const Tokenizer> tokenizer = model.tokenizer();
  const auto format = TRY(model.chat_format());
  if (format == nullptr) {
    return ChatPrompt{encode_prompt(*tokenizer, plain_conversation(*input.messages))};
  }
  const std::vector<PromptPiece> pieces = TRY(format->write(input));
  std::vector<PromptText> texts;
  texts.reserve(pieces.size());
  for (const PromptPiece& piece : pieces) texts.push_back({piece.text, !piece.is_from_input});
  return ChatPrompt{tokenizer->encode_pieces(texts, false), format->opens_reasoning(pieces),
                    format->closes_reasoning(pieces)};
}

std::string plain_conversation(const Json& messages) {
  std::string prompt;
  for (const Json& message : messages.get_array()) {
    if (!prompt.empty()) prompt += '\n';
    prompt += message_text(find(message, "content"));
  }
  return prompt;
}

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_bos = tokenizer.bos_id().has_value()});
}

}  // namespace lockstep

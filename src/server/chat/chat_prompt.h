// Converts a conversation to the token ids of a prompt. Used by the chat APIs and by `lockstep
// run`; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "node/models/model_service.h"

namespace lockstep {

struct ChatPrompt {
  std::vector<int32_t> ids;
  bool reasoning_is_open = false;    // the model continues inside its reasoning
  bool reasoning_is_closed = false;  // the prompt ends it, so there is none
};

// Renders the model's chat template. Only the template's own text yields special tokens, the
// beginning-of-sequence token included. Without a template the prompt is plain_conversation(),
// which ignores the rest of `input`. Errors are about the conversation or the template. The model
// must have a tokenizer.
Result<ChatPrompt> chat_prompt(const ModelService& model, const ChatInput& input);

// The messages' texts joined with line ends, without roles: text that a base model can continue.
std::string plain_conversation(const Json& messages);

// The ids of a plain text, after the model's beginning-of-sequence token if it has one.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text);

}  // namespace lockstep

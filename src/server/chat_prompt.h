// A conversation to the token ids that a model reads. Used by the chat API and by `lockstep run`;
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/chat_format.h"
#include "node/model_service.h"

namespace lockstep {

struct ChatPrompt {
  std::vector<int32_t> ids;
  bool reasoning_is_open = false;    // the model goes on inside its reasoning
  bool reasoning_is_closed = false;  // the prompt has ended it, so that there is none
};

// Through the model's chat template. Special tokens come from the template's own text alone, the
// beginning-of-sequence token too. A model without a template reads plain_conversation(), which
// shows nothing else of `input`. The errors are about the conversation or the template. The model
// must have a tokenizer.
Result<ChatPrompt> chat_prompt(const ModelService& model, const ChatInput& input);

// The messages' texts joined with line ends, without any mark of who spoke: what a base model can
// continue.
std::string plain_conversation(const Json& messages);

// The ids of a text that is no conversation, with the model's beginning-of-sequence token if it has
// one.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view text);

}  // namespace lockstep

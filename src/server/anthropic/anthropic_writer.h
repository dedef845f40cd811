// The answer to POST /v1/messages: a message whose content is a sequence of blocks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/chat/chat_writer.h"

namespace lockstep {

struct MessageSettings {
  std::string model;
  std::string request_id;
  int max_tokens = 0;  // that the request allows
  bool shows_thinking = true;
  bool tells_edits = false;
};

std::unique_ptr<ChatWriter> make_message_writer(MessageSettings settings);

}  // namespace lockstep

// The post-processor of a tokenizer.json. Only the tokens around one text are used: the chat
// template supplies the rest of a prompt.
#pragma once

#include <cstdint>
#include <optional>

#include "json/json.h"

namespace lockstep {

struct TextFrame {
  std::optional<int32_t> bos_id;  // before the text
  std::optional<int32_t> end_id;  // after it
};

// Empty if there is no post-processor or it adds nothing.
Result<TextFrame> read_text_frame(const Json* post_processor);

}  // namespace lockstep

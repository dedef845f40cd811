// The post-processor of a tokenizer.json, of which only the tokens around one text are used: what
// else a prompt needs comes from its chat template.
#pragma once

#include <cstdint>
#include <optional>

#include "json/json.h"

namespace lockstep {

struct TextFrame {
  std::optional<int32_t> bos_id;  // before the text
  std::optional<int32_t> end_id;  // behind it
};

// Empty if there is no post-processor or it puts nothing around a text.
Result<TextFrame> read_text_frame(const Json* post_processor);

}  // namespace lockstep

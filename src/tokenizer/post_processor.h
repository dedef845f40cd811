// The post-processor of a tokenizer.json, of which only the token at the beginning of a text (BOS)
// is used: what else a prompt needs comes from its chat template.
#pragma once

#include <cstdint>
#include <optional>

#include "json/json.h"

namespace lockstep {

// Nullopt if there is no post-processor or it puts nothing before a text.
Result<std::optional<int32_t>> read_bos_id(const Json* post_processor);

}  // namespace lockstep

// The tokens that end an answer, from the vocabulary of a GGUF file.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "gguf/gguf.h"

namespace lockstep {

// Ascending, without duplicates.
Result<std::vector<int64_t>> gguf_end_tokens(const GgufFile& file);

}  // namespace lockstep

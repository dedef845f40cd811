// Which tokens end an answer, by the vocabulary of a GGUF file.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"

namespace lockstep {

// Ascending, each once.
Result<std::vector<int64_t>> gguf_end_tokens(const GgufFile& file);

}  // namespace lockstep

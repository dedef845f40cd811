// The form in which a ModelStatus travels from the node that serves a model to those that hold
// clients of it. Pure functions. Left out: the name and `running`, which are each node's own, how
// well the weights were quantised, and the links.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/model_service.h"

namespace lockstep {

inline constexpr size_t kStatusErrorBytesMax = 4096;  // of last_error; the rest is cut off

std::string encode_status(const ModelStatus& status);
// kCorrupt where it makes no sense.
Result<ModelStatus> decode_status(std::string_view text);

}  // namespace lockstep

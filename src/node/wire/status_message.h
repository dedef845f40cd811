// The encoding of a ModelStatus sent from the node that serves a model to those that hold its
// clients. Pure functions. Left out: the name and `running`, which are each node's own, the quality
// of the quantised weights, and the links.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "node/models/model_service.h"

namespace lockstep {

inline constexpr size_t kStatusErrorBytesMax = 4096;  // of last_error; the rest is cut off

std::string encode_status(const ModelStatus& status);
// kCorrupt if invalid.
Result<ModelStatus> decode_status(std::string_view text);

}  // namespace lockstep

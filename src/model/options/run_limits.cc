#include "model/options/run_limits.h"

#include <fmt/core.h>

#include <algorithm>

namespace lockstep {

Result<int> context_for(const ModelConfig& config, int64_t requested) {
  if (requested > config.positions_max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("a context of {} was requested, the model has {} positions", requested,
                             config.positions_max)};
  }
  if (requested > 0) return static_cast<int>(requested);
  return std::min(config.positions_max, kContextDefault);
}

}  // namespace lockstep

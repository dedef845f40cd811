#include "access/thrown_error.h"

#include <fmt/core.h>

#include "base/threads/guarded.h"

namespace lockstep {

std::optional<ApiError> thrown_by(const std::function<void()>& run) {
  const Status done = guarded(run);
  if (done.ok()) return std::nullopt;
  if (done.error().code == ErrorCode::kExhausted) {
    return ApiError{503, "this machine has no memory left for the request; try again later", "",
                    "out_of_memory"};
  }
  return ApiError{500,
                  fmt::format("the request failed inside the server: {}", done.error().message), "",
                  "internal_error"};
}

}  // namespace lockstep

// Turns an exception of a library (mostly out of memory) into a value, at the bottom of a server
// thread: it fails the request and not the node. Any thread.
#pragma once

#include <functional>
#include <optional>

#include "access/api_error.h"

namespace lockstep {

// Runs `run`; nullopt if it did not throw, else 503 for lack of memory, and 500 otherwise.
std::optional<ApiError> thrown_by(const std::function<void()>& run);

}  // namespace lockstep

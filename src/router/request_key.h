// What the router reads out of a request: its model, and a digest of how it begins. Requests of one
// conversation begin alike, whatever was added behind. Pure functions over untrusted JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/json.h"

namespace lockstep {

// So much of the first messages or of a prompt counts: what comes later differs within one
// conversation.
inline constexpr size_t kPrefixBytesMax = 4096;
inline constexpr size_t kPrefixIdsMax = 256;

struct RequestKey {
  std::string model;               // as the client wrote it; empty: any
  std::optional<uint64_t> prefix;  // nullopt: nothing is kept of such a request (embeddings)
  bool is_stream = false;
};

// `path` is that of the route. A body that is no object, or lacks what its route needs, gets no
// prefix: the backend says what is wrong with it.
RequestKey read_request_key(std::string_view path, const Json& body);

// As a node reads a model's name: exactly, else in any case, else by the last part of a path.
bool is_name_of(std::string_view wanted, std::string_view model);

}  // namespace lockstep

// The parts of a request that the router reads: its model, and a digest of its beginning. Requests
// of one conversation begin alike, whatever was appended. Pure functions over untrusted JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "json/json.h"

namespace lockstep {

// The digest covers this much of the first messages or of a prompt: later parts differ within one
// conversation.
inline constexpr size_t kPrefixBytesMax = 4096;
inline constexpr size_t kPrefixIdsMax = 256;

struct RequestKey {
  std::string model;               // as the client wrote it; empty: any
  std::optional<uint64_t> prefix;  // nullopt: backends cache nothing for it (embeddings)
  bool is_stream = false;
};

// `path` is the route's. A body that is not an object, or lacks what its route needs, gets no
// prefix: the backend reports the error.
RequestKey read_request_key(std::string_view path, const Json& body);

// Matches like a node: exactly, else ignoring case, else by the last part of a path.
bool is_name_of(std::string_view wanted, std::string_view model);

}  // namespace lockstep

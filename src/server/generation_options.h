// What every text-generating API lets a request choose, independent of the API's own names for the
// rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sampling/options.h"
#include "server/request_fields.h"

namespace lockstep {

inline constexpr int kChoicesMax = 128;  // choices of one request: prompts times n
inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopBytesMax = 1024;  // of one stop string

struct GenerationOptions {
  std::string model;              // empty: the only one
  std::optional<int> max_tokens;  // nullopt: up to the context
  SamplingOptions sampling;       // the seed is always set
  std::vector<std::string> stop;
  int n = 1;
  bool is_streamed = false;
  bool includes_usage = false;
  std::vector<std::string> ignored;  // fields of the request that mean nothing to us
};

// model, temperature, top_p, top_k, seed, stop, n, stream, stream_options, user, and the refusal of
// what both APIs of OpenAI have and lockstep lacks. Not max_tokens, whose names and defaults
// differ.
ApiResult<GenerationOptions> parse_generation_options(RequestFields& fields);

}  // namespace lockstep

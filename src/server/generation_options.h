// What every text-generating API lets a request choose, independent of the API's own names for the
// rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/model_folder.h"
#include "sampling/options.h"
#include "server/request_fields.h"

namespace lockstep {

inline constexpr int kChoicesMax = 128;  // choices of one request: prompts times n
inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopBytesMax = 1024;  // of one stop string

struct GenerationOptions {
  std::string model;              // empty: the only one
  std::optional<int> max_tokens;  // nullopt: up to the context
  // nullopt: the model's default, else OpenAI's.
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;  // 0: all
  uint64_t seed = 0;             // a random one if the request has none
  std::vector<std::string> stop;
  int n = 1;
  bool is_streamed = false;
  bool includes_usage = false;
  std::vector<std::string> ignored;   // fields of the request that mean nothing to us
  std::vector<std::string> warnings;  // what it asks for and the answer is not held to
};

// model, temperature, top_p, top_k, seed, stop, n, stream, stream_options, user, and the refusal of
// what both APIs of OpenAI have and lockstep lacks. Not max_tokens, whose names and defaults
// differ.
ApiResult<GenerationOptions> parse_generation_options(RequestFields& fields);

// What the request says, else what the model's makers say, else temperature 1 and all tokens.
SamplingOptions sampling_of(const GenerationOptions& options, const SamplingDefaults& defaults);

}  // namespace lockstep

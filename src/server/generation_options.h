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
inline constexpr size_t kDryBreakerStringsMax = 64;

struct GenerationOptions {
  std::string model;              // empty: the only one
  std::optional<int> max_tokens;  // nullopt: up to the context
  // nullopt: the model's default, else OpenAI's.
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;  // 0: all
  SamplingOptions sampling;      // all the others of them, but for the seed
  uint64_t seed = 0;             // a random one if the request has none
  std::vector<LogitBias> logit_bias;
  std::vector<std::string> dry_breakers{"\n", ":", "\"", "*"};
  int min_tokens = 0;        // end tokens are not chosen before
  bool ignores_end = false;  // nor ever
  int top_logprobs = -1;     // -1: no logprobs
  std::vector<std::string> stop;
  int n = 1;
  bool is_streamed = false;
  bool includes_usage = false;
  std::vector<std::string> ignored;   // fields of the request that mean nothing to us
  std::vector<std::string> warnings;  // what it asks for and the answer is not held to
};

// model, the options of sampling, seed, stop, n, stream, stream_options, user. Not max_tokens and
// logprobs, whose names and forms differ between APIs.
ApiResult<GenerationOptions> parse_generation_options(RequestFields& fields);

// What the request says, else what the model's makers say, else temperature 1 and all tokens.
SamplingOptions sampling_of(const GenerationOptions& options, const SamplingDefaults& defaults);

// The tokens that the breakers of DRY are in a model's vocabulary: what each ends with behind a
// letter. None if DRY is off.
std::vector<int32_t> dry_breaker_tokens(const GenerationOptions& options,
                                        const Tokenizer& tokenizer);

}  // namespace lockstep

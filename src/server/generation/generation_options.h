// The options that all text-generating APIs share, independent of each API's other field names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/models/model_folder.h"
#include "sampling/options.h"
#include "server/request/request_fields.h"

namespace lockstep {

inline constexpr int kChoicesMax = 128;  // choices of one request: prompts times n
// Over all choices: each has its own copy of its prompt and of its echo.
inline constexpr size_t kPlanTokensMax = 4 << 20;
inline constexpr size_t kPlanEchoBytesMax = 16 << 20;
inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopBytesMax = 1024;  // of one stop string
inline constexpr size_t kDryBreakerStringsMax = 64;

// Things that an answer tells besides itself.
struct AnswerExtras {
  bool usage = false;
  bool timings = false;   // at its end
  bool progress = false;  // of its prompt
  bool events = false;    // where it stood still, see AnswerSeam
  bool receipt = false;   // at its end, see receipt.h
};

struct GenerationOptions {
  std::string model;              // empty: the only one
  std::optional<int> max_tokens;  // nullopt: up to the context
  // nullopt: the model's default, else OpenAI's.
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<int32_t> top_k;  // 0: all
  SamplingOptions sampling;      // the other options except the seed
  uint64_t seed = 0;             // a random one if the request has none
  std::vector<LogitBias> logit_bias;
  std::vector<std::string> dry_breakers{"\n", ":", "\"", "*"};
  int min_tokens = 0;        // no end token before that many
  bool ignores_end = false;  // end tokens do not end the answer
  int top_logprobs = -1;     // -1: no logprobs
  std::vector<std::string> stop;
  int n = 1;
  bool is_streamed = false;
  AnswerExtras extras;
  std::vector<std::string> ignored;   // unknown fields of the request
  std::vector<std::string> warnings;  // requested but not enforced
};

// model, sampling options, seed, stop, n, stream, stream_options, user. Not max_tokens and
// logprobs, whose names and forms differ between APIs.
ApiResult<GenerationOptions> parse_generation_options(RequestFields& fields);

// The request's values, else the model's defaults, else temperature 1 and all tokens.
SamplingOptions sampling_of(const GenerationOptions& options, const SamplingDefaults& defaults);

// The ids of DRY's sequence breakers: the last token of each one when encoded after a letter. None
// if DRY is off.
std::vector<int32_t> dry_breaker_tokens(const GenerationOptions& options,
                                        const Tokenizer& tokenizer);

}  // namespace lockstep

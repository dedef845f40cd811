// LoadPlan: the requests of a load test, one after the other: send time, length and content. A pure
// function of a seed, the same on every machine. Used by `lockstep bench serve`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct LengthRange {
  int least = 1;
  int most = 1;  // inclusive
};

// "128" or "64-256"; kInvalidArgument names `what` and the text.
Result<LengthRange> parse_length_range(std::string_view text, std::string_view what);

struct LoadShape {
  double rate = 0;  // requests per second, at random (a Poisson process); 0: the plan has no times
  LengthRange prompt_tokens{128, 128};
  LengthRange new_tokens{64, 64};
  double shared_prefix = 0;  // the part of each prompt that it shares with others, 0 to 1
  int prefix_count = 1;      // number of shared beginnings
  // Prompts are made of these tokens, which all but tiny vocabularies have.
  int first_token = 300;
  int token_count = 200;
  uint64_t seed = 1;
};

struct PlannedRequest {
  double at_s = 0;  // since the start of the load
  int prompt_tokens = 0;
  int new_tokens = 0;
  uint64_t number = 0;
};

class LoadPlan {
 public:
  explicit LoadPlan(const LoadShape& shape);

  PlannedRequest next();
  std::vector<int32_t> prompt_ids(const PlannedRequest& request) const;
  // One short word per token, for servers that take no ids.
  std::string prompt_text(const PlannedRequest& request) const;

 private:
  // The numbers that make a prompt: those of its beginning, then its own.
  std::vector<uint32_t> choices(const PlannedRequest& request, uint32_t count) const;
  int length(const LengthRange& range);

  LoadShape shape_;
  uint64_t random_;
  uint64_t count_ = 0;
  double at_s_ = 0;
};

}  // namespace lockstep

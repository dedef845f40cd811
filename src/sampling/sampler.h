// Sampler: one rank's part in choosing the tokens of a batch over a vocabulary that is cut over the
// ranks. One exchange: each rank sends its best candidate, or its logits where the whole row is
// needed, to rank 0. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/group.h"
#include "sampling/choose.h"

namespace lockstep {

struct ChoiceRequest {
  int32_t position = 0;  // of the token that is chosen, in its sequence
  SamplingOptions sampling;
  bool wants_token = false;
  bool wants_logits = false;
};

struct Choice {
  int32_t token = -1;             // -1 if none was wanted
  bool is_number = true;          // false: a logit is infinite or NaN, and nothing is chosen
  std::span<const float> logits;  // the whole row if wanted; valid until the next choose()
};

class Sampler {
 public:
  // Rank r has tokens [begins[r], begins[r + 1]). `group` must outlive the sampler.
  Sampler(Group& group, std::vector<int> begins);

  // `logits`: this rank's part of one row for each request. Rank 0 gets the choices, the others
  // nothing.
  Result<std::span<const Choice>> choose(std::span<const float> logits,
                                         std::span<const ChoiceRequest> requests);

 private:
  size_t width(int rank) const;
  size_t part_bytes(std::span<const ChoiceRequest> requests, int rank) const;
  void fill_own_part(std::span<const float> logits, std::span<const ChoiceRequest> requests);
  Choice choice_from_parts(const ChoiceRequest& request);

  Group& group_;
  std::vector<int> begins_;
  std::vector<std::vector<std::byte>> parts_;  // (ranks); the others' are filled on rank 0 only
  std::vector<std::span<std::byte>> part_spans_;
  std::vector<float> rows_;
  size_t rows_used_ = 0;
  std::vector<size_t> offsets_;  // (ranks) of the parts' bytes, those that are read
  std::vector<Choice> choices_;
  std::vector<Candidate> scratch_;
};

}  // namespace lockstep

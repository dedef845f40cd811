// DraftPasses: the draft layer's part of a step, on every rank of a group: its first pass, and one
// pass more for each further guess. Every rank makes the same guesses: the token with the largest
// logit, whatever the request's options are. The engine's thread uses it.
#pragma once

#include <span>
#include <vector>

#include "collective/group/group.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/step.h"
#include "model/forward/model.h"
#include "sampling/candidate.h"
#include "sampling/sampler.h"

namespace lockstep {

class DraftPasses {
 public:
  // All must outlive it.
  DraftPasses(Model& model, Group& group, Sampler& sampler)
      : model_(model), group_(group), sampler_(sampler) {}

  // Computes step.drafts, and puts the guesses into the step's batch and requests. The result is
  // valid until the next call. Errors are those of Model::draft() and of the exchanges.
  Result<DraftOutcome> run(Step& step);

 private:
  // The guess after each output of the last pass, into best_.
  Status choose(const ModelOutputs& outputs, size_t count);
  // The rows that are wanted, on rank 0.
  Status keep_logits(const ModelOutputs& outputs, const DraftOrders& orders);
  // Prepares the pass that continues the guesses which are not complete after `made`.
  void continue_guesses(const DraftOrders& orders, int made);

  Model& model_;
  Group& group_;
  Sampler& sampler_;
  DraftBatch next_;                // scratch
  std::vector<size_t> continued_;  // the orders' number of each output of the last pass
  std::vector<int32_t> last_rows_;
  std::vector<Candidate> best_;
  std::vector<std::vector<Candidate>> parts_;  // (ranks)
  std::vector<std::span<std::byte>> part_spans_;
  std::vector<ChoiceRequest> requests_;
  std::vector<std::vector<float>> logits_;
};

}  // namespace lockstep

// DraftPasses: the part of a step of a draft layer or a draft model, on every rank of a group: its
// first pass, and one pass more for each further guess; or blocks of guesses. It comes before the
// batch; in a pipeline a draft model's in the first stage, a layer's in the last one, after the
// choices. Every rank makes the same guesses: the token with the largest logit, whatever the
// request's options are. The engine's thread uses it.
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
  // All must outlive it. `draft_model` guesses instead of the model's own layer; null: there is
  // none. `sampler`, for a layer's logits, may be null with a draft model.
  DraftPasses(Model& model, Model* draft_model, Group& group, Sampler* sampler)
      : model_(model), draft_model_(draft_model), group_(group), sampler_(sampler) {
    after_choices_.reserve(model.limits());
    next_.batch.reserve(model.limits());
    guesses_.reserve(static_cast<size_t>(model.limits().tokens_max));
    right_rows_.reserve(static_cast<size_t>(model.limits().tokens_max));
  }

  // Computes step.drafts, and puts the guesses into the step's batch and requests. The result is
  // valid until the next call. Errors are those of the passes and of the exchanges, and
  // kCorrupt for orders that cannot be carried out.
  Result<DraftOutcome> run(Step& step);
  // Computes step.next_guesses, by a layer that makes one guess after the other. `choices`: the
  // step's, on rank 0. Returns the guesses of all sequences, -1 in place of those that could not be
  // made; valid until the next call. The step's logits and hidden states are gone then.
  Result<std::span<const int32_t>> guess_next(const Step& step,
                                              std::span<const SampledToken> choices);

 private:
  // The rows of a sequence whose tokens are right, and the token after them.
  struct RightRows {
    int32_t count = 0;
    int32_t token_after = -1;
  };
  // kCorrupt if the orders want what cannot be guessed.
  Status check(const DraftOrders& orders) const;
  bool guesses_blocks() const { return !draft_model_ && model_.config().guesses_blocks(); }
  // Puts the guesses into their places of `tokens`.
  Status guess_in_turn(const DraftOrders& orders, std::span<int32_t> tokens);
  // Fill right_rows_: from the choices, and from those of rank 0.
  void find_right_rows(const Step& step, std::span<const SampledToken> choices);
  Status agree_on_rows(const Step& step, std::span<const SampledToken> choices);
  Result<ModelOutputs> compute(const DraftBatch& pass);
  Status guess_blocks(Step& step);
  // The blocks after the outputs of `pass`, which are those from number `first` of the orders on.
  Status guess_blocks_of(const DraftBatch& pass, size_t first, Step& step);
  // Makes next_ of some rows, without outputs.
  void take_rows(const DraftBatch& pass, size_t begin, size_t end);
  // The guess after each output of the last pass, into best_.
  Status choose(const ModelOutputs& outputs, size_t count);
  // The rows that are wanted, on rank 0.
  Status keep_logits(const ModelOutputs& outputs, const DraftOrders& orders);
  Status keep_block_logits(const ModelOutputs& outputs, const DraftBatch& pass, int number);
  void keep(std::span<const float> row) { logits_.emplace_back(row.begin(), row.end()); }
  // Prepares the pass that continues the guesses which are not complete after `made`.
  void continue_guesses(const DraftOrders& orders, int made);

  Model& model_;
  Model* draft_model_;
  Group& group_;
  Sampler* sampler_;
  DraftBatch next_;                // scratch
  std::vector<size_t> continued_;  // the orders' number of each output of the last pass
  std::vector<int32_t> last_rows_;
  std::vector<int32_t> previous_;  // the token before each guess of a block
  std::vector<Candidate> best_;
  std::vector<std::vector<Candidate>> parts_;  // (ranks)
  std::vector<std::span<std::byte>> part_spans_;
  std::vector<ChoiceRequest> requests_;
  std::vector<std::vector<float>> logits_;
  std::vector<RightRows> right_rows_;  // (next_guesses)
  std::vector<std::byte> message_;
  DraftOrders after_choices_;
  std::vector<int32_t> guesses_;
};

}  // namespace lockstep

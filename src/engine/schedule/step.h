// Step: an order of rank 0 to the other ranks: to compute a batch and make the choices after it, to
// measure a link, or to stop. Encoded as a flat message in the machines' byte order, which all
// ranks of a group share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "collective/group/group.h"
#include "engine/choices/choice_orders.h"
#include "engine/pages/page_orders.h"
#include "model/forward/batch.h"
#include "sampling/sampler.h"

namespace lockstep {

// A pass of the draft layer, or of the draft model, before the batch is computed, and the guesses
// made from it.
struct DraftOrders {
  DraftBatch pass;
  // One for each output of the pass: `count` guesses take their places in the step's batch from
  // `at` on, where there are no tokens yet; 0: the logits are wanted, on rank 0.
  struct Guesses {
    int32_t count = 0;
    int32_t at = 0;
  };
  std::vector<Guesses> guesses;

  bool empty() const { return pass.batch.tokens.empty(); }
  void clear();
  void reserve(const BatchLimits& limits);
};

// Guesses for the next step of a sequence, in a pipeline: its last stage makes them right after the
// choices of this step, where the hidden states are.
struct NextGuesses {
  int32_t first_row = 0;     // of the sequence in the batch
  int32_t rows = 0;          // the layer sees them as far as their tokens prove right
  int32_t token_after = -1;  // -1: the choice there, if there is one
  int32_t count = 0;         // of guesses after that choice
};

struct Step {
  bool is_stop = false;                   // followers leave their loop
  std::optional<RankPair> measured{};     // each stage measures the link of this pair, nothing else
  PageOrders pages;                       // executed before anything is computed
  DraftOrders drafts;                     // computed before the batch
  Batch batch;                            // may be empty if there are orders
  std::vector<ChoiceRequest> requests;    // one for each of batch.outputs
  ChoiceOrders orders;                    // applied before the choices
  std::vector<NextGuesses> next_guesses;  // in ascending order of rows; there are no drafts then

  void clear();
  void reserve(const BatchLimits& limits);
};

size_t step_bytes_max(const BatchLimits& limits);
// For a step without any orders, as most are.
size_t plain_step_bytes_max(const BatchLimits& limits);
void encode_step(const Step& step, std::vector<std::byte>& bytes);
// Appends to `bytes`.
void append_step(const Step& step, std::vector<std::byte>& bytes);
// kCorrupt if the message breaks the limits or its own counts.
Status decode_step(std::span<const std::byte> bytes, const BatchLimits& limits, Step& step);

}  // namespace lockstep

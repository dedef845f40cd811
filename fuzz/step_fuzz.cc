// links: engine
// Messages between the ranks of a group and between stages; the first byte selects the kind, and
// from 128 on a model with recurrent layers, from 192 on one with window pages: an accepted message
// is within the limits, and nothing is read outside it.
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "engine/run/stage_messages.h"
#include "engine/schedule/step.h"

using namespace lockstep;

namespace {

constexpr StageLimits kLimits{
    .batch = {.tokens_max = 8, .page_list_entries_max = 4, .pages = 4, .vocab_size = 100},
    .hidden = 3,
    .vocab_size = 100};

void check(const PageOutcome& pages) {
  LOCKSTEP_CHECK(pages.saved >= PageOutcome::kNoStore && pages.loaded >= PageOutcome::kNoStore);
  LOCKSTEP_CHECK(pages.saved <= PageOutcome::kSavesMax);
  LOCKSTEP_CHECK(pages.loaded <= PageOutcome::kLoadsMax);
}

StageLimits limits_for(uint8_t first) {
  StageLimits limits = kLimits;
  limits.batch.states = first >= 128 && first < 192 ? 3 : 0;
  limits.batch.window_pages = first >= 192 ? 3 : 0;
  limits.batch.reach = first >= 192 ? 64 : 0;
  return limits;
}

// The model checks what a pass of the draft layer refers to.
void check(const DraftOrders& drafts, int tokens) {
  const Batch& pass = drafts.pass.batch;
  LOCKSTEP_CHECK(drafts.guesses.size() == pass.outputs.size());
  LOCKSTEP_CHECK(drafts.pass.hidden_rows.size() == pass.tokens.size());
  for (size_t i = 0; i < pass.outputs.size(); ++i) {
    LOCKSTEP_CHECK(pass.outputs[i] >= 0 && pass.outputs[i] < pass.token_count());
    LOCKSTEP_CHECK(i == 0 || pass.outputs[i - 1] < pass.outputs[i]);
  }
  for (const DraftOrders::Guesses& each : drafts.guesses) {
    LOCKSTEP_CHECK(each.count >= 0 && each.at >= 0 && each.at + each.count <= tokens);
  }
}

void check(const std::vector<NextGuesses>& guesses, int tokens) {
  int least = 0;
  for (const NextGuesses& each : guesses) {
    LOCKSTEP_CHECK(each.first_row >= least && each.rows > 0 && each.count >= 0);
    least = each.first_row + each.rows;
    LOCKSTEP_CHECK(least <= tokens);
  }
}

void check(const Step& step, const BatchLimits& limits) {
  LOCKSTEP_CHECK(check_batch(step.batch, limits).ok());
  LOCKSTEP_CHECK(step.requests.size() == step.batch.outputs.size());
  for (const ChoiceRequest& request : step.requests) {
    LOCKSTEP_CHECK(request.position > 0 && request.previous_token >= 0);
  }
  for (const SlotOrder& order : step.orders.slots) {
    LOCKSTEP_CHECK(order.slot >= 0 && order.setup.sampling.top_k >= 0);
  }
  check(step.drafts, step.batch.token_count());
  check(step.next_guesses, step.batch.token_count());
  LOCKSTEP_CHECK(step.pages.saves.size() <= kPageSavesMax);
  LOCKSTEP_CHECK(step.pages.loads.size() <= kPageLoadsMax);
  for (const auto* orders : {&step.pages.saves, &step.pages.loads}) {
    for (const PageOrder& order : *orders) {
      LOCKSTEP_CHECK(order.page >= 0 && order.page < limits.pages);
    }
  }
  const bool has_windows = limits.window_pages > 0;
  LOCKSTEP_CHECK(step.pages.state_saves.size() <= (has_windows ? kWindowSavesMax : kStateSavesMax));
  LOCKSTEP_CHECK(step.pages.state_loads.size() <= (has_windows ? kWindowLoadsMax : kStateLoadsMax));
  for (const auto* orders : {&step.pages.state_saves, &step.pages.state_loads}) {
    for (const StateOrder& order : *orders) {
      LOCKSTEP_CHECK(order.state >= 0 &&
                     order.state < (has_windows ? limits.window_pages : limits.states));
    }
  }
}

// A stage forwards the accepted step: it must be accepted there too.
void check_again(const Step& step, const BatchLimits& limits) {
  std::vector<std::byte> bytes;
  encode_step(step, bytes);
  LOCKSTEP_CHECK(bytes.size() <= step_bytes_max(limits));
  Step again;
  LOCKSTEP_CHECK(decode_step(bytes, limits, again).ok());
}

void look_at_work(std::span<const std::byte> message, const StageLimits& limits) {
  Step step;
  const auto work = decode_work(message, limits, step);
  if (!work.ok()) return;
  check(step, limits.batch);
  check(work.value().pages);
  volatile float sum = 0;  // so that every float is read
  for (const float value : work.value().hidden) sum = sum + value;
}

void look_at_result(std::span<const std::byte> message) {
  std::vector<SampledToken> choices;
  const auto result = decode_result(message, kLimits, choices);
  if (!result.ok()) return;
  check(result.value().pages.value_or(PageOutcome{}));
  volatile float sum = 0;
  for (const SampledToken& choice : result.value().choices) {
    LOCKSTEP_CHECK(choice.token >= -1 && choice.token < kLimits.vocab_size);
    for (const float value : choice.logits) sum = sum + value;
    for (const TokenLogprob& one : choice.logprobs) sum = sum + one.logprob;
  }
  for (const float value : result.value().hidden) sum = sum + value;
  for (const int32_t token : result.value().drafted.next_guesses) {
    LOCKSTEP_CHECK(token >= -1 && token < kLimits.vocab_size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // Messages lie at addresses that are aligned for floats.
  const auto* begin = reinterpret_cast<const std::byte*>(data + 1);
  const std::vector<std::byte> message(begin, begin + size - 1);
  const StageLimits limits = limits_for(data[0]);
  Step step;
  switch (data[0] % 3) {
    case 0:
      if (!decode_step(message, limits.batch, step).ok()) return 0;
      check(step, limits.batch);
      check_again(step, limits.batch);
      break;
    case 1:
      look_at_work(message, limits);
      break;
    default:
      look_at_result(message);
  }
  return 0;
}

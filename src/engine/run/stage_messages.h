// The messages between the stages of a pipeline, flat, in the machines' byte order: work for the
// next stage (a step and the hidden state of its tokens), and choices from the last stage. Incoming
// messages are checked against the model's limits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/schedule/scheduler.h"
#include "engine/schedule/step.h"

namespace lockstep {

struct StageLimits {
  BatchLimits batch;
  int hidden = 0;  // values per token
  int passed = 0;  // the same from one stage to the next
  int vocab_size = 0;
};

// The earlier stages' results for a step. Spans point into the message.
struct StageWork {
  std::span<const float> hidden;  // (tokens, passed)
  PageOutcome pages{};            // outcome of the step's page orders, if it has any
};

// The result of a step for the scheduler. Spans point into the message.
struct StepResult {
  std::span<const SampledToken> choices;
  std::span<const float> hidden;       // (hidden_outputs, hidden)
  std::optional<PageOutcome> pages{};  // if the step has page orders
  DraftOutcome drafted{};
};

size_t work_bytes_max(const StageLimits& limits);
// The hidden state is empty if the step is a stop or has no tokens.
void encode_work(const Step& step, const StageWork& work, std::vector<std::byte>& message);
Result<StageWork> decode_work(std::span<const std::byte> message, const StageLimits& limits,
                              Step& step);

size_t result_bytes_max(const StageLimits& limits);
void encode_result(const StepResult& result, std::vector<std::byte>& message);
// `choices` is overwritten; the result points to it and into `message`.
Result<StepResult> decode_result(std::span<const std::byte> message, const StageLimits& limits,
                                 std::vector<SampledToken>& choices);

}  // namespace lockstep

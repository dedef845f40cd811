// What the stages of a pipeline send each other, as flat messages in the byte order of the
// machines: work for the next stage (a step and the hidden state of its tokens), and from the last
// stage what was chosen. What comes in is checked against the model's limits.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/step.h"

namespace lockstep {

struct StageLimits {
  BatchLimits batch;
  int hidden = 0;  // of a token's state
  int vocab_size = 0;
};

// What the stages before have made of a step. Spans point into the message.
struct StageWork {
  std::span<const float> hidden;  // (tokens, hidden)
  PageOutcome pages{};            // of the step's orders for pages, if it has any
};

// What came of a step, as the scheduler takes it. Spans point into the message.
struct StepResult {
  std::span<const Choice> choices;
  std::span<const float> hidden;       // (hidden_outputs, hidden)
  std::optional<PageOutcome> pages{};  // if the step has orders for pages
};

size_t work_bytes_max(const StageLimits& limits);
// The hidden state is empty where the step is a stop or has no tokens.
void encode_work(const Step& step, const StageWork& work, std::vector<std::byte>& message);
Result<StageWork> decode_work(std::span<const std::byte> message, const StageLimits& limits,
                              Step& step);

size_t result_bytes_max(const StageLimits& limits);
void encode_result(const StepResult& result, std::vector<std::byte>& message);
// `choices` is overwritten; the result points to it and into `message`.
Result<StepResult> decode_result(std::span<const std::byte> message, const StageLimits& limits,
                                 std::vector<Choice>& choices);

}  // namespace lockstep

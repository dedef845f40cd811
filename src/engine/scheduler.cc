#include "engine/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/check.h"

namespace lockstep {
namespace {

// Adds rows of sum.size() values.
void add_rows(std::span<const float> rows, std::vector<double>& sum) {
  for (size_t i = 0; i < rows.size(); ++i) sum[i % sum.size()] += double{rows[i]};
}

// Not kCorrupt: nothing is wrong with the request.
Error broken_model(std::string_view what, int position) {
  return {
      ErrorCode::kInternal,
      fmt::format("the {} after {} token{} are not numbers (NaN or infinite): the checkpoint or "
                  "its quantisation is broken, download it again or use another",
                  what, position + 1, position == 0 ? "" : "s")};
}

}  // namespace

int pages_needed(const SchedulerLimits& limits) {
  return limits.sequences_max * pages_for(limits.context);
}

Scheduler::Scheduler(const SchedulerLimits& limits)
    : limits_(limits), pool_(pages_needed(limits)) {}

Status Scheduler::submit(uint64_t id, GenerateRequest request) {
  if (request.prompt.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens"};
  }
  for (int32_t token : request.prompt) {
    if (token < 0 || token >= limits_.vocab_size) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("token {} is not in the vocabulary of {} tokens", token, limits_.vocab_size)};
    }
  }
  if (request.prompt.size() > static_cast<size_t>(limits_.context)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the prompt has {} tokens, the context holds {}",
                             request.prompt.size(), limits_.context)};
  }
  if (request.pooling != Pooling::kNone && request.max_tokens != 0) {
    return Error{ErrorCode::kInvalidArgument, "an embedding is not followed by tokens"};
  }
  if (waiting_.size() >= static_cast<size_t>(limits_.waiting_max)) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("{} requests are waiting already, try again later", waiting_.size())};
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = id;
  sequence->tokens = request.prompt;
  sequence->request = std::move(request);
  waiting_.push_back(std::move(sequence));
  return Ok{};
}

bool Scheduler::cancel(uint64_t id) {
  const auto has_id = [id](const auto& sequence) { return sequence->id == id; };
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), has_id);
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
    return true;
  }
  const auto running = std::find_if(running_.begin(), running_.end(), has_id);
  if (running == running_.end()) return false;
  remove(**running);
  return true;
}

void Scheduler::plan(Step& step) {
  step.clear();
  planned_.clear();
  admit();
  for (const bool prompts : {false, true}) {  // decoding first: a long prompt must not hold it up
    for (const auto& sequence : running_) {
      const int room = limits_.tokens_max - step.batch.token_count();
      const bool is_prompt = sequence->unfed() > 1;
      if (is_prompt != prompts || room == 0) continue;
      const int chunk = sequence->request.chunk > 0 ? sequence->request.chunk : room;
      add(*sequence, std::min({sequence->unfed(), chunk, room}), step);
    }
  }
}

void Scheduler::admit() {
  while (!waiting_.empty() && static_cast<int>(running_.size()) < limits_.sequences_max) {
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void Scheduler::add(Sequence& sequence, int count, Step& step) {
  const int end = sequence.fed + count;
  const Status grown = pool_.grow(sequence.state, end);
  LOCKSTEP_CHECK(grown.ok());  // pages_needed() is enough for all
  Batch& batch = step.batch;
  const auto list = static_cast<int32_t>(batch.page_lists.size());
  const auto pages = sequence.state.pages();
  batch.page_lists.insert(batch.page_lists.end(), pages.begin(), pages.end());
  int outputs = 0, hidden_outputs = 0;
  for (int position = sequence.fed; position < end; ++position) {
    const bool is_last = position + 1 == static_cast<int>(sequence.tokens.size());
    const bool wants_token = is_last && sequence.request.max_tokens > 0;
    const bool wants_logits = sequence.request.prompt_logits && position < sequence.prompt_size();
    if (wants_token || wants_logits) {
      batch.outputs.push_back(batch.token_count());
      step.requests.push_back({.position = position + 1,
                               .sampling = sequence.request.sampling,
                               .wants_token = wants_token,
                               .wants_logits = wants_logits});
      ++outputs;
    }
    const Pooling pooling = sequence.request.pooling;
    if (pooling == Pooling::kMean || (pooling == Pooling::kLast && is_last)) {
      batch.hidden_outputs.push_back(batch.token_count());
      ++hidden_outputs;
    }
    batch.tokens.push_back(sequence.tokens[static_cast<size_t>(position)]);
    batch.positions.push_back(position);
    batch.list_offsets.push_back(list);
  }
  planned_.push_back({&sequence, count, outputs, hidden_outputs});
}

void Scheduler::complete(std::span<const Choice> choices, std::span<const float> hidden,
                         EngineEvents& events) {
  size_t next = 0, rows = 0;
  for (const Planned& planned : planned_) rows += static_cast<size_t>(planned.hidden_outputs);
  const size_t width = rows > 0 ? hidden.size() / rows : 0;
  for (const Planned& planned : planned_) {
    Sequence& sequence = *planned.sequence;
    sequence.fed += planned.fed;
    bool has_ended = false;
    for (int i = 0; i < planned.outputs; ++i) {
      const Choice& choice = choices[next++];
      if (has_ended) continue;
      if (choice.is_number) {
        has_ended = take_choice(sequence, choice, events);
      } else {  // the outputs of a step are a sequence's last tokens of it
        events.on_error(sequence.id, broken_model("logits", sequence.fed - planned.outputs + i));
        has_ended = true;
      }
    }
    if (planned.hidden_outputs > 0) {
      const size_t values = static_cast<size_t>(planned.hidden_outputs) * width;
      sequence.pooled.resize(width);
      add_rows(hidden.first(values), sequence.pooled);
      hidden = hidden.subspan(values);
    }
    if (!has_ended && sequence.request.max_tokens == 0 && sequence.unfed() == 0) {
      end_prompt(sequence, events);
      has_ended = true;
    }
    if (has_ended) remove(sequence);
  }
  planned_.clear();
}

void Scheduler::end_prompt(const Sequence& sequence, EngineEvents& events) {
  const auto is_finite = [](double sum) { return std::isfinite(sum); };
  if (!std::all_of(sequence.pooled.begin(), sequence.pooled.end(), is_finite)) {
    events.on_error(sequence.id, broken_model("values of the embedding", sequence.fed - 1));
    return;
  }
  if (sequence.request.pooling != Pooling::kNone) report_embedding(sequence, events);
  events.on_end(sequence.id, FinishReason::kLength);
}

void Scheduler::report_embedding(const Sequence& sequence, EngineEvents& events) {
  const bool is_mean = sequence.request.pooling == Pooling::kMean;
  const double count = is_mean ? sequence.prompt_size() : 1;
  std::vector<float> embedding;
  for (const double sum : sequence.pooled) embedding.push_back(static_cast<float>(sum / count));
  events.on_logits(sequence.id, embedding);
}

bool Scheduler::take_choice(Sequence& sequence, const Choice& choice, EngineEvents& events) {
  if (!choice.logits.empty()) events.on_logits(sequence.id, choice.logits);
  if (choice.token < 0) return false;
  const auto& stops = sequence.request.stop_ids;
  if (std::find(stops.begin(), stops.end(), choice.token) != stops.end()) {
    events.on_end(sequence.id, FinishReason::kStop);
    return true;
  }
  sequence.tokens.push_back(choice.token);
  events.on_token(sequence.id, choice.token);
  const int size = static_cast<int>(sequence.tokens.size());
  if (size - sequence.prompt_size() < sequence.request.max_tokens && size <= limits_.context) {
    return false;
  }
  events.on_end(sequence.id, FinishReason::kLength);
  return true;
}

void Scheduler::remove(const Sequence& sequence) {
  const auto found = std::find_if(running_.begin(), running_.end(),
                                  [&](const auto& s) { return s.get() == &sequence; });
  pool_.truncate((*found)->state, 0);
  running_.erase(found);
}

}  // namespace lockstep

#include "engine/run/stage_messages.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "collective/sums/message_stream.h"

namespace lockstep {
namespace {

// The step, preceded by its length, then the floats, then the outcome of its page orders.
struct WorkHeader {
  uint64_t step_bytes;
};

// Records of all choices, then their log-probabilities, then the rows of those that have one, then
// the hidden states, then the guesses for the next steps, then the outcome of page orders.
struct ResultHeader {
  uint32_t choices;  // and kHasPages
  uint32_t logprobs;
  uint32_t rows;
  uint32_t row_floats;
  uint32_t hidden_floats;
  uint32_t guesses;
};

constexpr uint32_t kHasPages = uint32_t{1} << 31;

struct ChoiceRecord {
  int32_t token;
  uint16_t flags;
  uint16_t logprobs;
};
constexpr uint16_t kHasRow = 1, kIsNumber = 2, kHasEnded = 4, kIsLost = 8;
constexpr size_t kLogprobsMax = 1 + kTopLogprobsMax;  // per choice

ChoiceRecord choice_record(const SampledToken& choice) {
  const auto flag = [](bool is_set, uint16_t bit) { return is_set ? bit : uint16_t{0}; };
  return {.token = choice.token,
          .flags = static_cast<uint16_t>(
              flag(!choice.logits.empty(), kHasRow) | flag(choice.is_number, kIsNumber) |
              flag(choice.has_ended, kHasEnded) | flag(choice.is_lost, kIsLost)),
          .logprobs = static_cast<uint16_t>(choice.logprobs.size())};
}

template <class Value>
void append_span(std::vector<std::byte>& message, std::span<const Value> values) {
  const auto bytes = std::as_bytes(values);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// Everything in a message is words of four bytes, so that values are aligned.
template <class Value>
std::span<const Value> values_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const Value*>(bytes.data()), bytes.size() / sizeof(Value)};
}

bool are_choice_tokens(std::span<const TokenLogprob> logprobs, const StageLimits& limits) {
  return std::all_of(logprobs.begin(), logprobs.end(), [&](const TokenLogprob& one) {
    return one.token >= 0 && one.token < limits.vocab_size;
  });
}

bool are_guesses(std::span<const int32_t> tokens, const StageLimits& limits) {
  return std::all_of(tokens.begin(), tokens.end(),
                     [&](int32_t token) { return token >= -1 && token < limits.vocab_size; });
}

size_t floats(int rows, int columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns);
}

void append_span(std::vector<std::byte>& message, const PageOutcome& pages) {
  append_span(message, std::span<const PageOutcome>(&pages, 1));
}

// Takes it from the end of the message, which is at least that long.
std::optional<PageOutcome> take_outcome(std::span<const std::byte>& message) {
  PageOutcome pages;
  const size_t rest = message.size() - sizeof(pages);
  std::memcpy(&pages, message.data() + rest, sizeof(pages));
  message = message.first(rest);
  const auto is_sound = [](int32_t count, int32_t most) {
    return count >= PageOutcome::kNoStore && count <= most;
  };
  if (!is_sound(pages.saved, PageOutcome::kSavesMax) ||
      !is_sound(pages.loaded, PageOutcome::kLoadsMax)) {
    return std::nullopt;
  }
  return pages;
}

// Made only when needed: they allocate.
Error broken_work() {
  return {ErrorCode::kCorrupt, "the previous stage sent work that breaks the group's limits"};
}
Error broken_result() {
  return {ErrorCode::kCorrupt, "the last stage sent choices that break the group's limits"};
}

}  // namespace

size_t work_bytes_max(const StageLimits& limits) {
  return sizeof(WorkHeader) + step_bytes_max(limits.batch) + sizeof(PageOutcome) +
         floats(limits.batch.tokens_max, limits.passed) * sizeof(float);
}

void encode_work(const Step& step, const StageWork& work, std::vector<std::byte>& message) {
  message.resize(sizeof(WorkHeader));
  append_step(step, message);
  reserve_message(message, message.size() + work.hidden.size_bytes() + sizeof(PageOutcome));
  const WorkHeader header{message.size() - sizeof(WorkHeader)};
  std::memcpy(message.data(), &header, sizeof(header));
  append_span(message, work.hidden);
  if (!step.pages.empty()) append_span(message, work.pages);
}

Result<StageWork> decode_work(std::span<const std::byte> message, const StageLimits& limits,
                              Step& step) {
  WorkHeader header;
  if (message.size() < sizeof(header)) return broken_work();
  std::memcpy(&header, message.data(), sizeof(header));
  auto rest = message.subspan(sizeof(header));
  if (header.step_bytes > rest.size() || header.step_bytes % sizeof(float) != 0)
    return broken_work();
  TRY(decode_step(rest.first(header.step_bytes), limits.batch, step));
  rest = rest.subspan(header.step_bytes);
  StageWork work;
  if (!step.pages.empty()) {
    if (rest.size() < sizeof(PageOutcome)) return broken_work();
    const auto pages = take_outcome(rest);
    if (!pages) return broken_work();
    work.pages = *pages;
  }
  const int tokens = step.is_stop ? 0 : step.batch.token_count();
  if (rest.size() != floats(tokens, limits.passed) * sizeof(float)) return broken_work();
  work.hidden = values_of<float>(rest);
  return work;
}

size_t result_bytes_max(const StageLimits& limits) {
  const int tokens = limits.batch.tokens_max;
  const size_t choice_bytes = sizeof(ChoiceRecord) + kLogprobsMax * sizeof(TokenLogprob);
  return sizeof(ResultHeader) + sizeof(PageOutcome) +
         static_cast<size_t>(tokens) * (choice_bytes + sizeof(int32_t)) +
         (floats(tokens, limits.vocab_size) + floats(tokens, limits.hidden)) * sizeof(float);
}

void encode_result(const StepResult& result, std::vector<std::byte>& message) {
  const auto choices = static_cast<uint32_t>(result.choices.size());
  ResultHeader header{.choices = choices | (result.pages ? kHasPages : 0),
                      .logprobs = 0,
                      .rows = 0,
                      .row_floats = 0,
                      .hidden_floats = static_cast<uint32_t>(result.hidden.size()),
                      .guesses = static_cast<uint32_t>(result.drafted.next_guesses.size())};
  for (const SampledToken& choice : result.choices) {
    header.logprobs += static_cast<uint32_t>(choice.logprobs.size());
    if (choice.logits.empty()) continue;
    ++header.rows;
    header.row_floats = static_cast<uint32_t>(choice.logits.size());
  }
  message.resize(sizeof(header) + result.choices.size() * sizeof(ChoiceRecord));
  std::byte* to = message.data();
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  for (const SampledToken& choice : result.choices) {
    const ChoiceRecord record = choice_record(choice);
    std::memcpy(to, &record, sizeof(record));
    to += sizeof(record);
  }
  for (const SampledToken& choice : result.choices) append_span(message, choice.logprobs);
  for (const SampledToken& choice : result.choices) append_span(message, choice.logits);
  append_span(message, result.hidden);
  append_span(message, result.drafted.next_guesses);
  if (result.pages) append_span(message, *result.pages);
}

Result<StepResult> decode_result(std::span<const std::byte> message, const StageLimits& limits,
                                 std::vector<SampledToken>& choices) {
  ResultHeader header;
  if (message.size() < sizeof(header)) return broken_result();
  std::memcpy(&header, message.data(), sizeof(header));
  StepResult result;
  if ((header.choices & kHasPages) != 0) {
    header.choices -= kHasPages;
    if (message.size() < sizeof(header) + sizeof(PageOutcome)) return broken_result();
    result.pages = take_outcome(message);
    if (!result.pages) return broken_result();
  }
  const auto tokens_max = static_cast<uint32_t>(limits.batch.tokens_max);
  const auto width = static_cast<size_t>(limits.vocab_size);
  if (header.choices > tokens_max || header.rows > header.choices) return broken_result();
  if (header.rows > 0 && header.row_floats != width) return broken_result();
  if (header.logprobs > header.choices * kLogprobsMax) return broken_result();
  const size_t guess_bytes = header.guesses * sizeof(int32_t);
  if (header.guesses > tokens_max || message.size() < guess_bytes) return broken_result();
  const auto guesses = message.last(guess_bytes);
  message = message.first(message.size() - guess_bytes);
  const size_t records = header.choices * sizeof(ChoiceRecord);
  const size_t logprob_bytes = header.logprobs * sizeof(TokenLogprob);
  const size_t values = header.rows * width + header.hidden_floats;
  if (message.size() != sizeof(header) + records + logprob_bytes + values * sizeof(float)) {
    return broken_result();
  }
  result.drafted.next_guesses = values_of<int32_t>(guesses);  // everything is whole words
  if (!are_guesses(result.drafted.next_guesses, limits)) return broken_result();
  std::span<const TokenLogprob> logprobs =
      values_of<TokenLogprob>(message.subspan(sizeof(header) + records, logprob_bytes));
  if (!are_choice_tokens(logprobs, limits)) return broken_result();
  auto rows = values_of<float>(message.subspan(sizeof(header) + records + logprob_bytes));
  choices.clear();
  for (size_t i = 0; i < header.choices; ++i) {
    ChoiceRecord record;
    std::memcpy(&record, message.data() + sizeof(header) + i * sizeof(record), sizeof(record));
    const bool is_token = record.token >= -1 && record.token < limits.vocab_size;
    const bool has_row = (record.flags & kHasRow) != 0;
    if (!is_token || record.logprobs > logprobs.size()) return broken_result();
    if (has_row && header.rows-- == 0) return broken_result();
    SampledToken& choice = choices.emplace_back();
    choice.token = record.token;
    choice.is_number = (record.flags & kIsNumber) != 0;
    choice.has_ended = (record.flags & kHasEnded) != 0;
    choice.is_lost = (record.flags & kIsLost) != 0;
    choice.logprobs = logprobs.first(record.logprobs);
    logprobs = logprobs.subspan(record.logprobs);
    if (!has_row) continue;
    choice.logits = rows.first(width);
    rows = rows.subspan(width);
  }
  if (header.rows != 0 || !logprobs.empty()) return broken_result();
  result.choices = choices;
  result.hidden = rows;
  return result;
}

}  // namespace lockstep

#include "engine/stage_messages.h"

#include <cstdint>
#include <cstring>

namespace lockstep {
namespace {

// The step, its length before it, then the floats.
struct WorkHeader {
  uint64_t step_bytes;
};

// Records of all choices, then the rows of those that have one, then the hidden states.
struct ResultHeader {
  uint32_t choices;
  uint32_t rows;
  uint32_t row_floats;
  uint32_t hidden_floats;
};

struct ChoiceRecord {
  int32_t token;
  int16_t has_row;
  int16_t is_number;
};

void append(std::vector<std::byte>& message, std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  message.insert(message.end(), bytes.begin(), bytes.end());
}

// Everything in a message is made of words of four bytes, so that floats lie where they may.
std::span<const float> floats_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

size_t floats(int rows, int columns) {
  return static_cast<size_t>(rows) * static_cast<size_t>(columns);
}

Error broken(const char* what) {
  return {ErrorCode::kCorrupt, what};
}

}  // namespace

size_t work_bytes_max(const StageLimits& limits) {
  return sizeof(WorkHeader) + step_bytes_max(limits.batch) +
         floats(limits.batch.tokens_max, limits.hidden) * sizeof(float);
}

void encode_work(const Step& step, std::span<const float> hidden, std::vector<std::byte>& message) {
  message.resize(sizeof(WorkHeader));
  append_step(step, message);
  const WorkHeader header{message.size() - sizeof(WorkHeader)};
  std::memcpy(message.data(), &header, sizeof(header));
  append(message, hidden);
}

Result<std::span<const float>> decode_work(std::span<const std::byte> message,
                                           const StageLimits& limits, Step& step) {
  const Error error = broken("the stage before sent work that breaks the group's limits");
  WorkHeader header;
  if (message.size() < sizeof(header)) return error;
  std::memcpy(&header, message.data(), sizeof(header));
  const auto rest = message.subspan(sizeof(header));
  if (header.step_bytes > rest.size() || header.step_bytes % sizeof(float) != 0) return error;
  TRY(decode_step(rest.first(header.step_bytes), limits.batch, step));
  const auto hidden = rest.subspan(header.step_bytes);
  const int tokens = step.is_stop ? 0 : step.batch.token_count();
  if (hidden.size() != floats(tokens, limits.hidden) * sizeof(float)) return error;
  return floats_of(hidden);
}

size_t result_bytes_max(const StageLimits& limits) {
  const int tokens = limits.batch.tokens_max;
  return sizeof(ResultHeader) + static_cast<size_t>(tokens) * sizeof(ChoiceRecord) +
         (floats(tokens, limits.vocab_size) + floats(tokens, limits.hidden)) * sizeof(float);
}

void encode_result(const StepResult& result, std::vector<std::byte>& message) {
  ResultHeader header{.choices = static_cast<uint32_t>(result.choices.size()),
                      .rows = 0,
                      .row_floats = 0,
                      .hidden_floats = static_cast<uint32_t>(result.hidden.size())};
  for (const Choice& choice : result.choices) {
    if (choice.logits.empty()) continue;
    ++header.rows;
    header.row_floats = static_cast<uint32_t>(choice.logits.size());
  }
  message.resize(sizeof(header) + result.choices.size() * sizeof(ChoiceRecord));
  std::byte* to = message.data();
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  for (const Choice& choice : result.choices) {
    const ChoiceRecord record{.token = choice.token,
                              .has_row = static_cast<int16_t>(choice.logits.empty() ? 0 : 1),
                              .is_number = static_cast<int16_t>(choice.is_number ? 1 : 0)};
    std::memcpy(to, &record, sizeof(record));
    to += sizeof(record);
  }
  for (const Choice& choice : result.choices) append(message, choice.logits);
  append(message, result.hidden);
}

Result<StepResult> decode_result(std::span<const std::byte> message, const StageLimits& limits,
                                 std::vector<Choice>& choices) {
  const Error error = broken("the last stage sent choices that break the group's limits");
  ResultHeader header;
  if (message.size() < sizeof(header)) return error;
  std::memcpy(&header, message.data(), sizeof(header));
  const auto tokens_max = static_cast<uint32_t>(limits.batch.tokens_max);
  const auto width = static_cast<size_t>(limits.vocab_size);
  if (header.choices > tokens_max || header.rows > header.choices) return error;
  if (header.rows > 0 && header.row_floats != width) return error;
  const size_t records = header.choices * sizeof(ChoiceRecord);
  const size_t values = header.rows * width + header.hidden_floats;
  if (message.size() != sizeof(header) + records + values * sizeof(float)) return error;
  auto rows = floats_of(message.subspan(sizeof(header) + records));
  choices.clear();
  for (size_t i = 0; i < header.choices; ++i) {
    ChoiceRecord record;
    std::memcpy(&record, message.data() + sizeof(header) + i * sizeof(record), sizeof(record));
    const bool is_token = record.token >= -1 && record.token < limits.vocab_size;
    if (!is_token || (record.has_row != 0 && header.rows-- == 0)) return error;
    Choice& choice = choices.emplace_back();
    choice.token = record.token;
    choice.is_number = record.is_number != 0;
    if (record.has_row == 0) continue;
    choice.logits = rows.first(width);
    rows = rows.subspan(width);
  }
  if (header.rows != 0) return error;
  return StepResult{choices, rows};
}

}  // namespace lockstep

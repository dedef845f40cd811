#include "engine/step.h"

#include <cstring>

namespace lockstep {
namespace {

struct Header {
  int32_t is_stop;
  int32_t tokens;
  int32_t page_list_entries;
  int32_t outputs;
  int32_t hidden_outputs;
};

struct RequestRecord {
  int32_t position;
  int32_t flags;
  float temperature;
  float top_p;
  int32_t top_k;
  int32_t reserved;
  uint64_t seed;
};
constexpr int32_t kWantsToken = 1, kWantsLogits = 2;

RequestRecord record_of(const ChoiceRequest& request) {
  const SamplingOptions& s = request.sampling;
  const int32_t flags =
      (request.wants_token ? kWantsToken : 0) | (request.wants_logits ? kWantsLogits : 0);
  return {request.position, flags, s.temperature, s.top_p, s.top_k, 0, s.seed};
}

ChoiceRequest request_of(const RequestRecord& record) {
  return {.position = record.position,
          .sampling = {record.temperature, record.top_k, record.top_p, record.seed},
          .wants_token = (record.flags & kWantsToken) != 0,
          .wants_logits = (record.flags & kWantsLogits) != 0};
}

size_t encoded_bytes(size_t tokens, size_t entries, size_t outputs, size_t hidden_outputs) {
  return sizeof(Header) + (3 * tokens + entries + outputs + hidden_outputs) * sizeof(int32_t) +
         outputs * sizeof(RequestRecord);
}

template <class T>
void append(std::vector<std::byte>& bytes, const T* values, size_t count) {
  const auto* from = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), from, from + count * sizeof(T));
}

template <class T>
void take(std::span<const std::byte>& bytes, T* values, size_t count) {
  if (count > 0) std::memcpy(values, bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
}

void take(std::span<const std::byte>& bytes, std::vector<int32_t>& values, int32_t count) {
  values.resize(static_cast<size_t>(count));
  take(bytes, values.data(), values.size());
}

// Made only when it is needed: it allocates.
Error broken_step() {
  return Error{ErrorCode::kCorrupt, "rank 0 sent a step that breaks the group's limits"};
}

bool within(int32_t value, int32_t most) {
  return value >= 0 && value <= most;
}

}  // namespace

void Step::clear() {
  is_stop = false;
  batch.clear();
  requests.clear();
}

void Step::reserve(const BatchLimits& limits) {
  batch.reserve(limits);
  requests.reserve(static_cast<size_t>(limits.tokens_max));
}

size_t step_bytes_max(const BatchLimits& limits) {
  const auto tokens = static_cast<size_t>(limits.tokens_max);
  return encoded_bytes(tokens, static_cast<size_t>(limits.page_list_entries_max), tokens, tokens);
}

void encode_step(const Step& step, std::vector<std::byte>& bytes) {
  bytes.clear();
  append_step(step, bytes);
}

void append_step(const Step& step, std::vector<std::byte>& bytes) {
  const Batch& batch = step.batch;
  const Header header{step.is_stop ? 1 : 0, batch.token_count(),
                      static_cast<int32_t>(batch.page_lists.size()),
                      static_cast<int32_t>(batch.outputs.size()),
                      static_cast<int32_t>(batch.hidden_outputs.size())};
  append(bytes, &header, 1);
  for (const auto* ints : {&batch.tokens, &batch.positions, &batch.list_offsets, &batch.page_lists,
                           &batch.outputs, &batch.hidden_outputs}) {
    append(bytes, ints->data(), ints->size());
  }
  for (const ChoiceRequest& request : step.requests) {
    const RequestRecord record = record_of(request);
    append(bytes, &record, 1);
  }
}

Status decode_step(std::span<const std::byte> bytes, const BatchLimits& limits, Step& step) {
  Header header;
  if (bytes.size() < sizeof(header)) return broken_step();
  take(bytes, &header, 1);
  if (!within(header.tokens, limits.tokens_max) ||
      !within(header.page_list_entries, limits.page_list_entries_max) ||
      !within(header.outputs, header.tokens) || !within(header.hidden_outputs, header.tokens)) {
    return broken_step();
  }
  const size_t expected = encoded_bytes(
      static_cast<size_t>(header.tokens), static_cast<size_t>(header.page_list_entries),
      static_cast<size_t>(header.outputs), static_cast<size_t>(header.hidden_outputs));
  if (bytes.size() + sizeof(header) != expected) return broken_step();
  step.clear();
  step.is_stop = header.is_stop != 0;
  for (auto* ints : {&step.batch.tokens, &step.batch.positions, &step.batch.list_offsets}) {
    take(bytes, *ints, header.tokens);
  }
  take(bytes, step.batch.page_lists, header.page_list_entries);
  take(bytes, step.batch.outputs, header.outputs);
  take(bytes, step.batch.hidden_outputs, header.hidden_outputs);
  for (int32_t i = 0; i < header.outputs; ++i) {
    RequestRecord record;
    take(bytes, &record, 1);
    step.requests.push_back(request_of(record));
  }
  return check_batch(step.batch, limits);
}

}  // namespace lockstep

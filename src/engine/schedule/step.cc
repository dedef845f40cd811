#include "engine/schedule/step.h"

#include <cstring>

#include "engine/engine.h"

namespace lockstep {
namespace {

struct StepHeader {
  int32_t flags;
  int32_t tokens;
  int32_t page_list_entries;
  int32_t outputs;
  int32_t hidden_outputs;
  uint32_t order_bytes;  // to the draft layer and for pages, if the flags say so, and for choices
};
// With kMeasures the second byte is the pair's lower rank, the third the higher one.
constexpr int32_t kIsStop = 1, kHasPageOrders = 2, kMeasures = 4, kHasDrafts = 8;
static_assert(LinkGraph::kRanksMax <= 256);

int32_t flags_of(const Step& step) {
  int32_t flags = (step.is_stop ? kIsStop : 0) | (step.pages.empty() ? 0 : kHasPageOrders);
  if (!step.drafts.empty()) flags |= kHasDrafts;
  if (step.measured) flags |= kMeasures | step.measured->low << 8 | step.measured->high << 16;
  return flags;
}

struct DraftHeader {
  int32_t tokens;
  int32_t page_list_entries;
  int32_t outputs;
};

// Position and previous token of a row are those of its token in the batch.
struct RequestRecord {
  int32_t slot;
  int32_t flags;
};
constexpr int32_t kWantsToken = 1, kWantsLogits = 2;

RequestRecord request_record(const ChoiceRequest& request) {
  return {
      .slot = request.slot,
      .flags = (request.wants_token ? kWantsToken : 0) | (request.wants_logits ? kWantsLogits : 0)};
}

ChoiceRequest request_of(const RequestRecord& record, const Batch& batch, size_t row) {
  return {.position = batch.positions[row] + 1,
          .previous_token = batch.tokens[row],
          .slot = record.slot,
          .wants_token = (record.flags & kWantsToken) != 0,
          .wants_logits = (record.flags & kWantsLogits) != 0};
}

struct StepSizes {
  size_t tokens = 0;
  size_t entries = 0;
  size_t outputs = 0;
  size_t hidden_outputs = 0;
  bool has_states = false;
};

size_t encoded_bytes(const StepSizes& sizes) {
  const size_t of_token = sizes.has_states ? 5 : 3;
  const size_t ints =
      of_token * sizes.tokens + sizes.entries + sizes.outputs + sizes.hidden_outputs;
  return sizeof(StepHeader) + ints * sizeof(int32_t) + sizes.outputs * sizeof(RequestRecord);
}

template <class T>
void append_values(std::vector<std::byte>& bytes, const T* values, size_t count) {
  const auto* from = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), from, from + count * sizeof(T));
}

template <class T>
void take_values(std::span<const std::byte>& bytes, T* values, size_t count) {
  if (count > 0) std::memcpy(values, bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
}

void take_values(std::span<const std::byte>& bytes, std::vector<int32_t>& values, int32_t count) {
  values.resize(static_cast<size_t>(count));
  take_values(bytes, values.data(), values.size());
}

// Made only when needed: it allocates.
Error broken_step() {
  return Error{ErrorCode::kCorrupt, "rank 0 sent a step that breaks the group's limits"};
}

bool within(int32_t value, int32_t most) {
  return value >= 0 && value <= most;
}

size_t draft_bytes(const DraftHeader& sizes) {
  const auto tokens = static_cast<size_t>(sizes.tokens);
  const auto entries = static_cast<size_t>(sizes.page_list_entries);
  const auto outputs = static_cast<size_t>(sizes.outputs);
  return sizeof(DraftHeader) + (4 * tokens + entries + outputs) * sizeof(int32_t) +
         outputs * sizeof(DraftOrders::Guesses);
}

void append_drafts(const DraftOrders& drafts, std::vector<std::byte>& bytes) {
  const Batch& batch = drafts.pass.batch;
  const DraftHeader header{batch.token_count(), static_cast<int32_t>(batch.page_lists.size()),
                           static_cast<int32_t>(batch.outputs.size())};
  append_values(bytes, &header, 1);
  for (const auto* ints : {&batch.tokens, &batch.positions, &batch.list_offsets,
                           &drafts.pass.hidden_rows, &batch.page_lists, &batch.outputs}) {
    append_values(bytes, ints->data(), ints->size());
  }
  append_values(bytes, drafts.guesses.data(), drafts.guesses.size());
}

// Returns the rest of the bytes. The model checks what the pass refers to.
Result<std::span<const std::byte>> take_drafts(std::span<const std::byte> bytes,
                                               const BatchLimits& limits, Step& step) {
  DraftHeader header;
  if (bytes.size() < sizeof(header)) return broken_step();
  take_values(bytes, &header, 1);
  if (header.tokens < 1 || !within(header.tokens, limits.tokens_max) ||
      !within(header.page_list_entries, limits.page_list_entries_max) ||
      !within(header.outputs, header.tokens) ||
      bytes.size() + sizeof(header) < draft_bytes(header)) {
    return broken_step();
  }
  Batch& batch = step.drafts.pass.batch;
  for (auto* ints :
       {&batch.tokens, &batch.positions, &batch.list_offsets, &step.drafts.pass.hidden_rows}) {
    take_values(bytes, *ints, header.tokens);
  }
  take_values(bytes, batch.page_lists, header.page_list_entries);
  take_values(bytes, batch.outputs, header.outputs);
  step.drafts.guesses.resize(batch.outputs.size());
  take_values(bytes, step.drafts.guesses.data(), step.drafts.guesses.size());
  for (const DraftOrders::Guesses& each : step.drafts.guesses) {
    const int room = step.batch.token_count() - each.count;
    if (!within(each.count, kDraftTokensMax) || !within(each.at, room)) {
      return broken_step();
    }
  }
  return bytes;
}

}  // namespace

void DraftOrders::clear() {
  pass.batch.clear();
  pass.hidden_rows.clear();
  guesses.clear();
}

void Step::clear() {
  is_stop = false;
  measured.reset();
  drafts.clear();
  pages.clear();
  batch.clear();
  requests.clear();
  orders.clear();
}

void Step::reserve(const BatchLimits& limits) {
  batch.reserve(limits);
  drafts.pass.batch.reserve(limits);
  drafts.pass.hidden_rows.reserve(static_cast<size_t>(limits.tokens_max));
  requests.reserve(static_cast<size_t>(limits.tokens_max));
}

size_t step_bytes_max(const BatchLimits& limits) {
  return plain_step_bytes_max(limits) + page_orders_bytes_max() + orders_bytes_max(limits);
}

size_t plain_step_bytes_max(const BatchLimits& limits) {
  const auto tokens = static_cast<size_t>(limits.tokens_max);
  return encoded_bytes({.tokens = tokens,
                        .entries = static_cast<size_t>(limits.page_list_entries_max),
                        .outputs = tokens,
                        .hidden_outputs = tokens,
                        .has_states = limits.states > 0}) +
         draft_bytes({limits.tokens_max, limits.page_list_entries_max, limits.tokens_max});
}

void encode_step(const Step& step, std::vector<std::byte>& bytes) {
  bytes.clear();
  append_step(step, bytes);
}

void append_step(const Step& step, std::vector<std::byte>& bytes) {
  const Batch& batch = step.batch;
  StepHeader header{flags_of(step),
                    batch.token_count(),
                    static_cast<int32_t>(batch.page_lists.size()),
                    static_cast<int32_t>(batch.outputs.size()),
                    static_cast<int32_t>(batch.hidden_outputs.size()),
                    0};
  const size_t begin = bytes.size();
  append_values(bytes, &header, 1);
  for (const auto* ints :
       {&batch.tokens, &batch.positions, &batch.list_offsets, &batch.states_from, &batch.states_to,
        &batch.page_lists, &batch.outputs, &batch.hidden_outputs}) {
    append_values(bytes, ints->data(), ints->size());
  }
  for (const ChoiceRequest& request : step.requests) {
    const RequestRecord record = request_record(request);
    append_values(bytes, &record, 1);
  }
  if (step.orders.empty() && step.pages.empty() && step.drafts.empty()) return;
  const size_t plain_size = bytes.size();
  if (!step.drafts.empty()) append_drafts(step.drafts, bytes);
  if (!step.pages.empty()) append_page_orders(step.pages, bytes);
  append_orders(step.orders, bytes);
  header.order_bytes = static_cast<uint32_t>(bytes.size() - plain_size);
  std::memcpy(bytes.data() + begin, &header, sizeof(header));
}

Status decode_step(std::span<const std::byte> bytes, const BatchLimits& limits, Step& step) {
  StepHeader header;
  if (bytes.size() < sizeof(header)) return broken_step();
  take_values(bytes, &header, 1);
  if (!within(header.tokens, limits.tokens_max) ||
      !within(header.page_list_entries, limits.page_list_entries_max) ||
      !within(header.outputs, header.tokens) || !within(header.hidden_outputs, header.tokens)) {
    return broken_step();
  }
  const size_t expected =
      encoded_bytes({.tokens = static_cast<size_t>(header.tokens),
                     .entries = static_cast<size_t>(header.page_list_entries),
                     .outputs = static_cast<size_t>(header.outputs),
                     .hidden_outputs = static_cast<size_t>(header.hidden_outputs),
                     .has_states = limits.states > 0});
  if (bytes.size() + sizeof(header) != expected + header.order_bytes) return broken_step();
  step.clear();
  step.is_stop = (header.flags & kIsStop) != 0;
  if ((header.flags & kMeasures) != 0) {
    step.measured = RankPair{header.flags >> 8 & 0xff, header.flags >> 16 & 0xff};
  }
  for (auto* ints : {&step.batch.tokens, &step.batch.positions, &step.batch.list_offsets}) {
    take_values(bytes, *ints, header.tokens);
  }
  if (limits.states > 0) {
    take_values(bytes, step.batch.states_from, header.tokens);
    take_values(bytes, step.batch.states_to, header.tokens);
  }
  take_values(bytes, step.batch.page_lists, header.page_list_entries);
  take_values(bytes, step.batch.outputs, header.outputs);
  take_values(bytes, step.batch.hidden_outputs, header.hidden_outputs);
  TRY(check_batch(step.batch, limits));
  for (const int32_t output : step.batch.outputs) {
    RequestRecord record;
    take_values(bytes, &record, 1);
    step.requests.push_back(request_of(record, step.batch, static_cast<size_t>(output)));
  }
  if ((header.flags & kHasDrafts) != 0) bytes = TRY(take_drafts(bytes, limits, step));
  if ((header.flags & kHasPageOrders) != 0) {
    bytes = TRY(take_page_orders(bytes, limits, step.pages));
    if (step.pages.empty()) return broken_step();
  }
  return decode_orders(bytes, limits, step.orders);
}

}  // namespace lockstep

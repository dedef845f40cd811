#include "engine/schedule/step.h"

#include <cstring>

#include "engine/engine.h"

namespace lockstep {
namespace {

struct BatchSizes {
  int32_t tokens;
  int32_t page_list_entries;
  int32_t outputs;
  int32_t hidden_outputs;
};

struct StepHeader {
  int32_t flags;
  BatchSizes batch;
  uint32_t order_bytes;  // window pages, and orders to the draft layer, for pages and for guesses,
                         // as the flags say, and those for choices
};
// With kMeasures the second byte is the pair's lower rank, the third the higher one.
constexpr int32_t kIsStop = 1, kHasPageOrders = 2, kMeasures = 4, kHasDrafts = 8,
                  kHasNextGuesses = 16, kHasWindows = 32;
static_assert(LinkGraph::kRanksMax <= 256);

int32_t flags_of(const Step& step) {
  int32_t flags = (step.is_stop ? kIsStop : 0) | (step.pages.empty() ? 0 : kHasPageOrders);
  if (!step.drafts.empty()) flags |= kHasDrafts;
  if (!step.next_guesses.empty()) flags |= kHasNextGuesses;
  if (!step.batch.window_offsets.empty()) flags |= kHasWindows;
  if (step.measured) flags |= kMeasures | step.measured->low << 8 | step.measured->high << 16;
  return flags;
}

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

BatchSizes sizes_of(const Batch& batch) {
  return {.tokens = batch.token_count(),
          .page_list_entries = static_cast<int32_t>(batch.page_lists.size()),
          .outputs = static_cast<int32_t>(batch.outputs.size()),
          .hidden_outputs = static_cast<int32_t>(batch.hidden_outputs.size())};
}

// The largest step's batch has these, as has the largest pass of the draft layer.
BatchSizes most_sizes(const BatchLimits& limits) {
  return {.tokens = limits.tokens_max,
          .page_list_entries = limits.page_list_entries_max,
          .outputs = limits.tokens_max,
          .hidden_outputs = limits.tokens_max};
}

bool are_within(const BatchSizes& sizes, const BatchLimits& limits) {
  return within(sizes.tokens, limits.tokens_max) &&
         within(sizes.page_list_entries, limits.page_list_entries_max) &&
         within(sizes.outputs, sizes.tokens) && within(sizes.hidden_outputs, sizes.tokens);
}

size_t batch_bytes(const BatchSizes& sizes, bool has_states) {
  const size_t of_token = has_states ? 5 : 3;
  return (of_token * static_cast<size_t>(sizes.tokens) +
          static_cast<size_t>(sizes.page_list_entries) + static_cast<size_t>(sizes.outputs) +
          static_cast<size_t>(sizes.hidden_outputs)) *
         sizeof(int32_t);
}

void append_batch(const Batch& batch, std::vector<std::byte>& bytes) {
  for (const auto* ints :
       {&batch.tokens, &batch.positions, &batch.list_offsets, &batch.states_from, &batch.states_to,
        &batch.page_lists, &batch.outputs, &batch.hidden_outputs}) {
    append_values(bytes, ints->data(), ints->size());
  }
}

// There are batch_bytes() at least.
void take_batch(std::span<const std::byte>& bytes, const BatchSizes& sizes, bool has_states,
                Batch& batch) {
  for (auto* ints : {&batch.tokens, &batch.positions, &batch.list_offsets}) {
    take_values(bytes, *ints, sizes.tokens);
  }
  for (auto* ints : {&batch.states_from, &batch.states_to}) {
    take_values(bytes, *ints, has_states ? sizes.tokens : 0);
  }
  take_values(bytes, batch.page_lists, sizes.page_list_entries);
  take_values(bytes, batch.outputs, sizes.outputs);
  take_values(bytes, batch.hidden_outputs, sizes.hidden_outputs);
}

// How long the lists of window pages are, where those of the tokens begin, and the lists.
size_t window_bytes(size_t tokens, size_t entries) {
  return (1 + tokens + entries) * sizeof(int32_t);
}

void append_windows(const Batch& batch, std::vector<std::byte>& bytes) {
  const auto entries = static_cast<int32_t>(batch.window_lists.size());
  append_values(bytes, &entries, 1);
  append_values(bytes, batch.window_offsets.data(), batch.window_offsets.size());
  append_values(bytes, batch.window_lists.data(), batch.window_lists.size());
}

// Returns the rest of the bytes.
Result<std::span<const std::byte>> take_windows(std::span<const std::byte> bytes,
                                                const BatchLimits& limits, Batch& batch) {
  int32_t entries = 0;
  if (bytes.size() < sizeof(entries)) return broken_step();
  std::memcpy(&entries, bytes.data(), sizeof(entries));
  if (!within(entries, limits.page_list_entries_max) ||
      bytes.size() < window_bytes(batch.tokens.size(), static_cast<size_t>(entries))) {
    return broken_step();
  }
  bytes = bytes.subspan(sizeof(entries));
  take_values(bytes, batch.window_offsets, batch.token_count());
  take_values(bytes, batch.window_lists, entries);
  return bytes;
}

size_t plain_step_bytes(const BatchSizes& sizes, bool has_states) {
  return sizeof(StepHeader) + batch_bytes(sizes, has_states) +
         static_cast<size_t>(sizes.outputs) * sizeof(RequestRecord);
}

// A pass's sizes, its batch, which has no states and no hidden outputs, the rows of its hidden
// values, and the guesses for its outputs.
size_t draft_bytes(const BatchSizes& pass) {
  return sizeof(pass) + batch_bytes(pass, false) +
         static_cast<size_t>(pass.tokens) * sizeof(int32_t) +
         static_cast<size_t>(pass.outputs) * sizeof(DraftOrders::Guesses);
}

void append_drafts(const DraftOrders& drafts, std::vector<std::byte>& bytes) {
  const BatchSizes sizes = sizes_of(drafts.pass.batch);
  append_values(bytes, &sizes, 1);
  append_batch(drafts.pass.batch, bytes);
  append_values(bytes, drafts.pass.hidden_rows.data(), drafts.pass.hidden_rows.size());
  append_values(bytes, drafts.guesses.data(), drafts.guesses.size());
}

bool are_rows(const std::vector<int32_t>& outputs, int32_t tokens) {
  int32_t least = 0;
  for (const int32_t output : outputs) {
    if (output < least || output >= tokens) return false;
    least = output + 1;
  }
  return true;
}

// Returns the rest of the bytes. The model checks what else the pass refers to.
Result<std::span<const std::byte>> take_drafts(std::span<const std::byte> bytes,
                                               const BatchLimits& limits, Step& step) {
  BatchSizes sizes;
  if (bytes.size() < sizeof(sizes)) return broken_step();
  take_values(bytes, &sizes, 1);
  if (!are_within(sizes, limits) || sizes.tokens < 1 || sizes.hidden_outputs != 0 ||
      bytes.size() + sizeof(sizes) < draft_bytes(sizes)) {
    return broken_step();
  }
  DraftOrders& drafts = step.drafts;
  take_batch(bytes, sizes, false, drafts.pass.batch);
  take_values(bytes, drafts.pass.hidden_rows, sizes.tokens);
  if (!are_rows(drafts.pass.batch.outputs, sizes.tokens)) return broken_step();
  drafts.guesses.resize(static_cast<size_t>(sizes.outputs));
  take_values(bytes, drafts.guesses.data(), drafts.guesses.size());
  for (const DraftOrders::Guesses& each : drafts.guesses) {
    if (!within(each.count, kDraftTokensMax)) return broken_step();
    if (!within(each.at, step.batch.token_count() - each.count)) return broken_step();
  }
  return bytes;
}

// Their number, then the records. Returns the rest of the bytes.
Result<std::span<const std::byte>> take_next_guesses(std::span<const std::byte> bytes,
                                                     const BatchLimits& limits, Step& step) {
  uint32_t count = 0;
  if (bytes.size() < sizeof(count)) return broken_step();
  take_values(bytes, &count, 1);
  const int tokens = step.batch.token_count();
  const bool is_sound = count > 0 && count <= static_cast<uint32_t>(tokens) &&
                        bytes.size() >= count * sizeof(NextGuesses) && step.drafts.empty();
  if (!is_sound) return broken_step();
  step.next_guesses.resize(count);
  take_values(bytes, step.next_guesses.data(), count);
  int least = 0, guesses = 0;
  for (const NextGuesses& each : step.next_guesses) {
    const bool are_rows =
        each.first_row >= least && each.rows > 0 && within(each.first_row, tokens - each.rows);
    const bool is_token = each.token_after >= -1 && each.token_after < limits.vocab_size;
    if (!are_rows || !is_token || !within(each.count, kDraftTokensMax)) return broken_step();
    least = each.first_row + each.rows;
    guesses += each.count;
  }
  if (guesses > limits.tokens_max) return broken_step();
  return bytes;
}

void append_next_guesses(std::span<const NextGuesses> guesses, std::vector<std::byte>& bytes) {
  const auto count = static_cast<uint32_t>(guesses.size());
  append_values(bytes, &count, 1);
  append_values(bytes, guesses.data(), guesses.size());
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
  next_guesses.clear();
}

void DraftOrders::reserve(const BatchLimits& limits) {
  pass.batch.reserve(limits);
  pass.hidden_rows.reserve(static_cast<size_t>(limits.tokens_max));
}

void Step::reserve(const BatchLimits& limits) {
  batch.reserve(limits);
  drafts.reserve(limits);
  requests.reserve(static_cast<size_t>(limits.tokens_max));
  next_guesses.reserve(static_cast<size_t>(limits.tokens_max));
}

size_t step_bytes_max(const BatchLimits& limits) {
  return plain_step_bytes_max(limits) + page_orders_bytes_max() + orders_bytes_max(limits);
}

size_t plain_step_bytes_max(const BatchLimits& limits) {
  const BatchSizes most = most_sizes(limits);
  const auto tokens = static_cast<size_t>(most.tokens);
  const auto entries = static_cast<size_t>(most.page_list_entries);
  const size_t windows = limits.window_pages > 0 ? window_bytes(tokens, entries) : 0;
  return plain_step_bytes(most, limits.states > 0) + windows + draft_bytes(most);
}

void encode_step(const Step& step, std::vector<std::byte>& bytes) {
  bytes.clear();
  append_step(step, bytes);
}

void append_step(const Step& step, std::vector<std::byte>& bytes) {
  StepHeader header{.flags = flags_of(step), .batch = sizes_of(step.batch), .order_bytes = 0};
  const size_t begin = bytes.size();
  append_values(bytes, &header, 1);
  append_batch(step.batch, bytes);
  for (const ChoiceRequest& request : step.requests) {
    const RequestRecord record = request_record(request);
    append_values(bytes, &record, 1);
  }
  const bool has_guesses = !step.drafts.empty() || !step.next_guesses.empty();
  const bool has_windows = !step.batch.window_offsets.empty();
  if (step.orders.empty() && step.pages.empty() && !has_guesses && !has_windows) return;
  const size_t plain_size = bytes.size();
  if (has_windows) append_windows(step.batch, bytes);
  if (!step.drafts.empty()) append_drafts(step.drafts, bytes);
  if (!step.next_guesses.empty()) append_next_guesses(step.next_guesses, bytes);
  if (!step.pages.empty()) append_page_orders(step.pages, bytes);
  append_orders(step.orders, bytes);
  header.order_bytes = static_cast<uint32_t>(bytes.size() - plain_size);
  std::memcpy(bytes.data() + begin, &header, sizeof(header));
}

Status decode_step(std::span<const std::byte> bytes, const BatchLimits& limits, Step& step) {
  StepHeader header;
  if (bytes.size() < sizeof(header)) return broken_step();
  take_values(bytes, &header, 1);
  if (!are_within(header.batch, limits)) return broken_step();
  const bool has_states = limits.states > 0;
  const size_t plain_size = plain_step_bytes(header.batch, has_states);
  if (bytes.size() + sizeof(header) != plain_size + header.order_bytes) return broken_step();
  step.clear();
  step.is_stop = (header.flags & kIsStop) != 0;
  if ((header.flags & kMeasures) != 0) {
    step.measured = RankPair{header.flags >> 8 & 0xff, header.flags >> 16 & 0xff};
  }
  take_batch(bytes, header.batch, has_states, step.batch);
  std::span<const std::byte> rest = bytes.last(header.order_bytes);
  if ((header.flags & kHasWindows) != 0) rest = TRY(take_windows(rest, limits, step.batch));
  TRY(check_batch(step.batch, limits));
  for (const int32_t output : step.batch.outputs) {
    RequestRecord record;
    take_values(bytes, &record, 1);
    step.requests.push_back(request_of(record, step.batch, static_cast<size_t>(output)));
  }
  bytes = rest;
  if ((header.flags & kHasDrafts) != 0) bytes = TRY(take_drafts(bytes, limits, step));
  if ((header.flags & kHasNextGuesses) != 0) {
    bytes = TRY(take_next_guesses(bytes, limits, step));
  }
  if ((header.flags & kHasPageOrders) != 0) {
    bytes = TRY(take_page_orders(bytes, limits, step.pages));
    if (step.pages.empty()) return broken_step();
  }
  return decode_orders(bytes, limits, step.orders);
}

}  // namespace lockstep

#include "engine/choices/choice_orders.h"

#include <cmath>
#include <cstring>

#include "kernels/kernels.h"
#include "sampling/logprobs.h"

namespace lockstep {
namespace {

constexpr size_t kWord = sizeof(int32_t);

size_t words_of(size_t bytes) {
  return (bytes + kWord - 1) / kWord;
}

// Without gaps, so that equal orders give equal bytes.
struct SamplingRecord {
  int32_t top_k;
  int32_t penalty_tokens;
  int32_t dry_allowed_length;
  int32_t dry_tokens;
  float temperature;
  float top_p;
  float min_p;
  float typical_p;
  float repetition_penalty;
  float presence_penalty;
  float frequency_penalty;
  float dry_multiplier;
  float dry_base;
  int32_t top_logprobs;
  uint64_t seed;
};
static_assert(sizeof(SamplingRecord) == 14 * sizeof(int32_t) + sizeof(uint64_t));

SamplingRecord sampling_record(const ChoiceSetup& setup) {
  const SamplingOptions& s = setup.sampling;
  return {.top_k = s.top_k,
          .penalty_tokens = s.penalty_tokens,
          .dry_allowed_length = s.dry_allowed_length,
          .dry_tokens = s.dry_tokens,
          .temperature = s.temperature,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .typical_p = s.typical_p,
          .repetition_penalty = s.repetition_penalty,
          .presence_penalty = s.presence_penalty,
          .frequency_penalty = s.frequency_penalty,
          .dry_multiplier = s.dry_multiplier,
          .dry_base = s.dry_base,
          .top_logprobs = setup.top_logprobs,
          .seed = s.seed};
}

SamplingOptions sampling_of(const SamplingRecord& record) {
  return {.temperature = record.temperature,
          .top_k = record.top_k,
          .top_p = record.top_p,
          .seed = record.seed,
          .min_p = record.min_p,
          .typical_p = record.typical_p,
          .repetition_penalty = record.repetition_penalty,
          .penalty_tokens = record.penalty_tokens,
          .presence_penalty = record.presence_penalty,
          .frequency_penalty = record.frequency_penalty,
          .dry_multiplier = record.dry_multiplier,
          .dry_base = record.dry_base,
          .dry_allowed_length = record.dry_allowed_length,
          .dry_tokens = record.dry_tokens};
}

// Everything is words; lists and texts are preceded by their length.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& bytes) : bytes_(bytes) {}

  void put(int32_t value) { append(&value, sizeof(value)); }
  void put(const SamplingRecord& record) { append(&record, sizeof(record)); }
  void put(const std::vector<int32_t>& values) {
    put(static_cast<int32_t>(values.size()));
    append(values.data(), values.size() * sizeof(int32_t));
  }
  void put(const std::vector<LogitBias>& values) {
    put(static_cast<int32_t>(values.size()));
    append(values.data(), values.size() * sizeof(LogitBias));
  }
  void put(const std::string& text) {
    put(static_cast<int32_t>(text.size()));
    append(text.data(), text.size());
    bytes_.resize(bytes_.size() + words_of(text.size()) * kWord - text.size());
  }

 private:
  void append(const void* values, size_t size) {
    const auto* from = static_cast<const std::byte*>(values);
    bytes_.insert(bytes_.end(), from, from + size);
  }

  std::vector<std::byte>& bytes_;
};

// After an invalid value everything that follows is 0 and is_broken() is true.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool is_broken() const { return is_broken_; }
  bool is_at_end() const { return bytes_.empty() && !is_broken_; }

  template <class Value>
  Value value() {
    Value value{};
    take(&value, sizeof(value), sizeof(value));
    return value;
  }
  int32_t word() { return value<int32_t>(); }
  // From 0 to `most`.
  int32_t number(int64_t most) {
    const int32_t value = word();
    if (value >= 0 && value <= most) return value;
    is_broken_ = true;
    return 0;
  }
  template <class Value>
  void list(size_t most, std::vector<Value>& values) {
    const auto count = static_cast<size_t>(number(static_cast<int64_t>(most)));
    if (count * sizeof(Value) > bytes_.size()) is_broken_ = true;
    values.resize(is_broken_ ? 0 : count);
    if (!values.empty()) take(values.data(), count * sizeof(Value), count * sizeof(Value));
  }
  void text(size_t most, std::string& text) {
    const auto size = static_cast<size_t>(number(static_cast<int64_t>(most)));
    if (size > bytes_.size()) is_broken_ = true;
    text.resize(is_broken_ ? 0 : size);
    if (!text.empty()) take(text.data(), size, words_of(size) * kWord);
  }

 private:
  void take(void* to, size_t size, size_t used) {
    is_broken_ |= used > bytes_.size();
    if (is_broken_) return;
    std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(used);
  }

  std::span<const std::byte> bytes_;
  bool is_broken_ = false;
};

// All positions that the sequences of a step can have.
size_t positions_max(const BatchLimits& limits) {
  return static_cast<size_t>(limits.page_list_entries_max) * kPagePositions;
}

bool are_tokens(std::span<const int32_t> tokens, const BatchLimits& limits) {
  for (const int32_t token : tokens) {
    if (token < 0 || token >= limits.vocab_size) return false;
  }
  return true;
}

void put(const SlotOrder& order, Writer& writer) {
  const ChoiceSetup& setup = order.setup;
  writer.put(order.slot);
  writer.put(order.grammar);
  writer.put(sampling_record(setup));
  writer.put(setup.answer_begin);
  writer.put(setup.begin);
  writer.put(setup.min_tokens);
  writer.put(setup.tokens);
  writer.put(setup.stop_ids);
  writer.put(setup.dry_breakers);
  writer.put(setup.logit_bias);
}

bool get(Reader& reader, const BatchLimits& limits, SlotOrder& order) {
  ChoiceSetup& setup = order.setup;
  order.slot = reader.number(limits.tokens_max);
  order.grammar = reader.word();
  const auto sampling = reader.value<SamplingRecord>();
  setup.sampling = sampling_of(sampling);
  setup.top_logprobs = sampling.top_logprobs;
  setup.answer_begin = reader.number(INT32_MAX);
  setup.begin = reader.number(setup.answer_begin);
  setup.min_tokens = reader.number(INT32_MAX);
  reader.list(positions_max(limits), setup.tokens);
  reader.list(kStopIdsMax, setup.stop_ids);
  reader.list(kDryBreakersMax, setup.dry_breakers);
  reader.list(kLogitBiasMax, setup.logit_bias);
  const auto prompt = static_cast<size_t>(setup.answer_begin - setup.begin);
  // The sampler relies on these two.
  if (setup.sampling.top_k < 0 || setup.top_logprobs < -1 || setup.top_logprobs > kTopLogprobsMax) {
    return false;
  }
  for (const LogitBias& one : setup.logit_bias) {
    if (!std::isfinite(one.bias)) return false;
  }
  return !reader.is_broken() && order.grammar >= -1 && order.grammar < kGrammarsMax &&
         prompt <= setup.tokens.size() && are_tokens(setup.tokens, limits);
}

}  // namespace

void ChoiceOrders::clear() {
  released.clear();
  grammars.clear();
  slots.clear();
}

size_t orders_bytes_max(const BatchLimits& limits) {
  constexpr size_t kSlotWords =
      10 + sizeof(SamplingRecord) / kWord + 2 * kLogitBiasMax + kStopIdsMax + kDryBreakersMax;
  const auto slots = static_cast<size_t>(limits.tokens_max);
  const size_t grammar_words = 4 + words_of(kConstraintBytesMax) + kStopIdsMax;
  return kWord *
         (3 + slots + kGrammarsMax * grammar_words + slots * kSlotWords + positions_max(limits));
}

void append_orders(const ChoiceOrders& orders, std::vector<std::byte>& bytes) {
  if (orders.empty()) return;
  Writer writer(bytes);
  writer.put(orders.released);
  writer.put(static_cast<int32_t>(orders.grammars.size()));
  for (const GrammarOrder& order : orders.grammars) {
    writer.put(order.grammar);
    writer.put(order.constraint);
    writer.put(order.end_tokens);
  }
  writer.put(static_cast<int32_t>(orders.slots.size()));
  for (const SlotOrder& order : orders.slots) put(order, writer);
}

Status decode_orders(std::span<const std::byte> bytes, const BatchLimits& limits,
                     ChoiceOrders& orders) {
  orders.clear();
  if (bytes.empty()) return Ok{};
  const Error broken{ErrorCode::kCorrupt, "rank 0 sent orders that break the group's limits"};
  Reader reader(bytes);
  const auto slots = static_cast<size_t>(limits.tokens_max);
  reader.list(slots, orders.released);
  orders.grammars.resize(static_cast<size_t>(reader.number(kGrammarsMax)));
  for (GrammarOrder& order : orders.grammars) {
    order.grammar = reader.number(kGrammarsMax - 1);
    reader.text(kConstraintBytesMax, order.constraint);
    reader.list(kStopIdsMax, order.end_tokens);
  }
  orders.slots.resize(static_cast<size_t>(reader.number(static_cast<int64_t>(slots))));
  for (SlotOrder& order : orders.slots) {
    if (!get(reader, limits, order)) return broken;
  }
  for (const int32_t slot : orders.released) {
    if (slot < 0 || slot > limits.tokens_max) return broken;
  }
  if (!reader.is_at_end()) return broken;
  return Ok{};
}

}  // namespace lockstep

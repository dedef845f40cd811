#include "kernels/answers/fixed_answers.h"

#include <cstddef>

#include "kernels/answers/sample_quantised.h"
#include "kernels/math.h"

namespace lockstep {
namespace {

class AnswerSum {  // FNV-1a, 64 bits
 public:
  void add(const void* data, size_t bytes) {
    const auto* from = static_cast<const unsigned char*>(data);
    for (size_t i = 0; i < bytes; ++i) value_ = (value_ ^ from[i]) * 0x100000001b3u;
  }
  void add(const std::vector<float>& values) { add(values.data(), values.size() * sizeof(float)); }
  void add(double value) { add(&value, sizeof(value)); }
  void add(float value) { add(&value, sizeof(value)); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

uint64_t matmul_checksum(const KernelTable& table) {
  AnswerSum sum;
  constexpr size_t kColumns = 640;
  const std::vector<LeafStep> steps = {{40, 0, 0}, {30, 1, 0}, {27, 1, 1}, {543, 0, 1}};
  for (PackedCodes type : kCodesByColumn) {
    SampleRandom random(17);
    const MatrixByColumn matrix = random_matrix(random, type, 75, kColumns, SampleKind::kNasty);
    const std::vector<float> input = random.units(11 * kColumns);
    std::vector<float> output(size_t{2} * 11 * 75);
    const PackedMatrix view = matrix.view(steps);
    const MatmulPart part = {&view, input.data(), kColumns * sizeof(float)};
    table.matmul({&part, 1, 0, 5, 11, output.data(), 75, size_t{11} * 75});
    sum.add(output);
  }
  return sum.value();
}

uint64_t quantised_checksum(const KernelTable& table) {
  AnswerSum sum;
  SampleRandom random(41);
  const SamplePlan plan = plan_of({{40, 30, 27}, {3}});
  for (const QuantisedFormat& format : kQuantisedFormats) {
    const QuantisedMatrix matrix(random, format, 75, plan.steps);
    const std::vector<float> activations = random.units(size_t{11} * 100);
    const PreparedInput input = prepare_input(table, matrix, activations, 11);
    sum.add(input.integers.data(), input.integers.size() * sizeof(InputBlock8));
    sum.add(input.floats.data(), input.floats.size() * sizeof(InputBlockF));
    const PackedMatrix view = matrix.view();
    const MatmulPart part = {&view, input.token(0), input.stride};
    std::vector<float> output(size_t{2} * 11 * 75);
    table.matmul({&part, 1, 0, 5, 11, output.data(), 75, size_t{11} * 75});
    sum.add(output);
    const int32_t row = 50;
    std::vector<float> embedded(100);
    table.embed({&view, matrix.blocks().data(), &row, 0, 1, embedded.data(), 100});
    sum.add(embedded);
  }
  return sum.value();
}

struct AttentionSample {
  KvKind kind = KvKind::kF32;
  int head_dim = 36;
  bool has_sinks = false;
  SampleKind values = SampleKind::kPlain;  // of keys and values
};

// With kinds that round, also of what is stored.
uint64_t attention_checksum(const KernelTable& table, const AttentionSample& sample) {
  SampleRandom random(23);
  const auto head_dim = static_cast<size_t>(sample.head_dim);
  const int positions = 150;
  const size_t stride = page_head_stride(sample.kind, sample.head_dim);
  std::vector<std::byte> keys(3 * stride), values(3 * stride);
  const PageArgs pages = {
      sample.kind, keys.data(), values.data(), stride, sample.head_dim, sample.head_dim, 1};
  const auto drawn_values = [&] {
    std::vector<float> drawn(positions * head_dim);
    for (float& value : drawn) value = draw(random, sample.values);
    return drawn;
  };
  const std::vector<float> new_keys = drawn_values();
  const std::vector<float> new_values = drawn_values();
  const int32_t page_list[] = {2, 0, 1};
  std::vector<int32_t> page, slot;
  for (int position = 0; position < positions; ++position) {
    page.push_back(page_list[position / kPagePositions]);
    slot.push_back(position % kPagePositions);
  }
  table.store_kv({pages, new_keys.data(), new_values.data(), head_dim, head_dim, page.data(),
                  slot.data(), 0, positions});
  AnswerSum sum;
  if (sample.kind != KvKind::kF32) {
    sum.add(keys.data(), keys.size());
    sum.add(values.data(), values.size());
  }
  std::vector<float> query = random.units(7 * head_dim);
  for (float& q : query) q *= 5.0f;
  std::vector<float> output(7 * head_dim);
  const std::vector<float> drawn = random.units(7);
  const float* sinks = sample.has_sinks ? drawn.data() : nullptr;
  for (int position : {0, 20, 63, 64, 149}) {
    table.attention(
        {pages, 0, page_list, position, 0, query.data(), 7, 0.5f, sinks, output.data()});
    sum.add(output);
  }
  return sum.value();
}

// A head that ends in a short block of columns, and one whose numbers are nasty.
uint64_t stored_checksum(const KernelTable& table, KvKind kind) {
  AnswerSum sum;
  const uint64_t plain = attention_checksum(table, {.kind = kind, .has_sinks = true});
  const uint64_t nasty =
      attention_checksum(table, {.kind = kind, .head_dim = 75, .values = SampleKind::kNasty});
  sum.add(&plain, sizeof(plain));
  sum.add(&nasty, sizeof(nasty));
  return sum.value();
}

// Whole keys are stored as values; some positions of each page, one page without any.
uint64_t chosen_checksum(const KernelTable& table, KvKind kind) {
  SampleRandom random(43);
  constexpr int kDim = 75, kPositions = 240, kHeads = 18;
  constexpr size_t kWidth = kDim;
  const size_t stride = page_head_stride(kind, kDim);
  std::vector<std::byte> keys(4 * stride), values(4 * stride);
  const PageArgs pages = {kind, keys.data(), values.data(), stride, kDim, kDim, 1};
  const std::vector<float> rows = random.units(kPositions * kWidth);
  const int32_t page_list[] = {2, 0, 3, 1};
  std::vector<int32_t> page, slot;
  for (int position = 0; position < kPositions; ++position) {
    page.push_back(page_list[position / kPagePositions]);
    slot.push_back(position % kPagePositions);
  }
  table.store_kv(
      {pages, rows.data(), rows.data(), kWidth, kWidth, page.data(), slot.data(), 0, kPositions});
  AnswerSum sum;
  const std::vector<float> query = random.units(kHeads * kWidth);
  std::vector<float> scores(4 * kPagePositions);
  table.index_scores({pages, page_list, 0, 4, query.data(), random.units(kHeads).data(), kHeads,
                      kPagePositions, scores.data()});
  scores.resize(kPositions);
  sum.add(scores);
  const uint32_t chosen[] = {0x80000001u, 0x00f00000u, 0, 0, ~0u, 0x12345678u, 1u, 0x8000u};
  std::vector<float> output(kHeads * size_t{41});
  AttentionArgs args{pages,  0,    page_list, kPositions - 1, 0,     query.data(),
                     kHeads, 0.5f, nullptr,   output.data(),  chosen};
  args.pages.value_dim = 41;
  table.attention_chosen(args);
  sum.add(output);
  return sum.value();
}

uint64_t layers_checksum(const KernelTable& table) {
  SampleRandom random(29);
  std::vector<float> x = random.units(3 * 300);
  const std::vector<float> weight = random.units(300);
  AnswerSum sum;
  table.rms_norm({x.data(), 300, weight.data(), 300, 1e-6f, 0, 3, x.data(), 300});
  sum.add(x);
  x.resize(3 * 70);
  table.rms_norm({x.data(), 70, weight.data(), 70, 1e-6f, 0, 3, x.data(), 70});
  sum.add(x);
  const std::vector<float> cosines_sines = random.units(3 * 2 * 17);
  table.rope({x.data(), 70, 2, 35, 17, cosines_sines.data(), 0, 3});
  sum.add(x);
  for (float& value : x) value *= 20.0f;
  std::vector<float> up = random.units(x.size());
  table.silu_mul(x.data(), up.data(), up.data(), up.size());
  sum.add(up);
  table.add(up.data(), x.data(), x.size());
  sum.add(x);
  return sum.value();
}

uint64_t swiglu_checksum(const KernelTable& table) {
  SampleRandom random(37);
  std::vector<float> gate = random.units(210), up = random.units(210);
  for (float& value : gate) value *= 20.0f;
  for (float& value : up) value *= 10.0f;
  table.clamped_swiglu(gate.data(), up.data(), 7.0f, up.data(), up.size());
  AnswerSum sum;
  sum.add(up);
  return sum.value();
}

uint64_t recurrent_checksum(const KernelTable& table) {
  constexpr size_t kRows = 40, kColumns = 90, kTaps = 4;
  SampleRandom random(43);
  AnswerSum sum;
  std::vector<float> state = random.units(kRows * kColumns), past = random.units(3 * kColumns);
  for (int token = 0; token < 3; ++token) {
    std::vector<float> x = random.units(kColumns);
    const std::vector<float> weights = random.units(kTaps * kColumns);
    table.convolve(
        {x.data(), weights.data(), past.data(), past.data(), x.data(), kTaps, kColumns, kColumns});
    const std::vector<float> query = random.units(kRows), key = random.units(kRows);
    std::vector<float> decays = random.units(kRows), rates = random.units(kRows);
    const std::vector<float> bias = random.units(kRows);
    table.sigmoid(rates.data(), rates.data(), kRows);
    table.decay(bias.data(), rates.data(), decays.data(), kRows);
    std::vector<float> output(kColumns);
    table.delta_rule({state.data(), state.data(), query.data(), key.data(), x.data(), decays.data(),
                      1, rates[0], kRows, kColumns, output.data()});
    sum.add(output);
  }
  sum.add(state);
  sum.add(past);
  return sum.value();
}

// Keys of pools, in columns that end in a short group of lanes.
uint64_t pools_checksum(const KernelTable& table, KvKind kind) {
  SampleRandom random(47);
  constexpr int kColumns = 41, kPool = 4;
  constexpr size_t kWidth = 2 * kColumns;
  std::vector<std::byte> keys(page_head_stride(kind, kWidth));
  std::vector<std::byte> pools(page_head_stride(KvKind::kF32, kColumns));
  const PageArgs inputs = {kind, keys.data(), nullptr, keys.size(), kWidth, 0, 1};
  const std::vector<float> rows = random.units(kPagePositions * kWidth);
  const std::vector<int32_t> page(kPagePositions, 0);
  std::vector<int32_t> slot;
  for (int i = 0; i < kPagePositions; ++i) slot.push_back(i);
  table.store_kv({inputs, rows.data(), rows.data(), kWidth, kWidth, page.data(), slot.data(), 0,
                  kPagePositions});
  const std::vector<float> bias = random.units(kPool * kColumns);
  for (int32_t pool = 0; pool < kPagePositions / kPool; ++pool) {
    table.pool_key({inputs,
                    {KvKind::kF32, pools.data(), nullptr, pools.size(), kColumns, 0, 1},
                    bias.data(),
                    kColumns,
                    kPool,
                    0,
                    pool});
  }
  AnswerSum sum;
  sum.add(pools.data(), pools.size());
  return sum.value();
}

// Entries of two blocks, and attention over them, all or some, and over a window.
uint64_t compressed_checksum(const KernelTable& table, KvKind kind) {
  SampleRandom random(59);
  constexpr int kColumns = 41, kInputs = 4 * kColumns, kPool = 4, kPages = 5, kHeads = 18;
  constexpr int kPositions = 70 * kPool, kSlots = kPagePositions / kPool;
  constexpr size_t kRow = kColumns * sizeof(float);
  std::vector<std::byte> inputs(kPages * page_head_stride(kind, kInputs));
  std::vector<std::byte> rows(kPages * page_head_stride(kind, kColumns));
  std::vector<std::byte> entries(kPages * kSlots * kRow);
  const PageArgs input_pages{kind,    nullptr, inputs.data(), inputs.size() / kPages, kInputs,
                             kInputs, 1};
  const PageArgs row_pages{kind, nullptr, rows.data(), rows.size() / kPages, kColumns, kColumns, 1};
  const PageArgs entry_pages{KvKind::kF32, nullptr, entries.data(), kSlots * kRow, kColumns,
                             kColumns,     1};
  const int32_t page_list[kPages] = {2, 0, 4, 3, 1};
  const std::vector<float> bias = random.units(size_t{kPool} * 2 * kColumns);
  AnswerSum sum;
  for (int32_t position = 0; position < kPositions; ++position) {
    const int32_t page = page_list[position / kPagePositions], slot = position % kPagePositions;
    const std::vector<float> input = random.units(kInputs), row = random.units(kColumns);
    table.store_kv({input_pages, nullptr, input.data(), 0, kInputs, &page, &slot, 0, 1});
    table.store_kv({row_pages, nullptr, row.data(), 0, kColumns, &page, &slot, 0, 1});
    if ((position + 1) % kPool != 0) continue;
    std::vector<float> entry(kColumns);
    table.compress({input_pages, bias.data(), page_list, position, kPool, true, kColumns, 0,
                    kColumns, entry.data()});
    sum.add(entry);
    const int32_t entry_slot = position / kPool % kSlots;
    table.store_kv({entry_pages, nullptr, entry.data(), 0, kColumns, &page, &entry_slot, 0, 1});
  }
  const std::vector<float> query = random.units(size_t{kHeads} * kColumns);
  const std::vector<float> sinks = random.units(kHeads);
  const uint32_t chosen[] = {0x80000001u, 0x00f00000u, 0x2au, 0};
  std::vector<float> output(query.size());
  for (const uint32_t* choice : {static_cast<const uint32_t*>(nullptr), &chosen[0]}) {
    table.compressed_attention({row_pages, entry_pages, kPool, page_list, page_list, kPositions - 1,
                                100, query.data(), kHeads, 0.5f, sinks.data(), choice,
                                output.data()});
    sum.add(output);
  }
  return sum.value();
}

uint64_t streams_checksum(const KernelTable& table) {
  SampleRandom random(53);
  constexpr int kStreams = 3;
  constexpr size_t kColumns = 90;
  std::vector<float> streams = random.units(kStreams * kColumns), x(kColumns);
  const std::vector<float> pre = random.units(kStreams), post = random.units(kStreams);
  const std::vector<float> mix = random.units(kStreams * kStreams), bias = random.units(kColumns);
  AnswerSum sum;
  table.collapse_streams(streams.data(), kColumns, pre.data(), kStreams, kColumns, x.data());
  table.update_streams(x.data(), post.data(), mix.data(), kStreams, kColumns, streams.data(),
                       kColumns);
  sum.add(x);
  sum.add(streams);
  table.bounded_decay(bias.data(), streams.data(), -5.0f, x.data(), kColumns);
  sum.add(x);
  return sum.value();
}

// Streams with a weight of a norm each, which match queries and get their parts of a convolution
// whose taps are some tokens apart.
uint64_t matches_checksum(const KernelTable& table) {
  SampleRandom random(61);
  constexpr int kStreams = 3, kTaps = 3, kDilation = 2;
  constexpr size_t kColumns = 150, kAll = kStreams * kColumns;
  std::vector<float> keys = random.units(kAll), streams = random.units(kAll);
  const std::vector<float> weights = random.units(kAll), taps = random.units(kTaps * kColumns);
  const std::vector<float> post = random.units(kStreams);
  std::vector<float> past(size_t{kTaps - 1} * kDilation * kColumns);
  AnswerSum sum;
  for (int token = 0; token < 6; ++token) {
    const std::vector<float> query = random.units(kColumns);
    std::vector<float> x = random.units(kColumns);
    table.silu(x.data(), kColumns);
    table.convolve({x.data(), taps.data(), token == 0 ? nullptr : past.data(), past.data(),
                    x.data(), kTaps, kColumns, kColumns, kDilation});
    table.inject_streams(x.data(), post.data(), kStreams, kColumns, streams.data(), kColumns);
    table.rms_norm({streams.data(), kColumns, weights.data(), kColumns, 1e-6f, 0, kStreams,
                    keys.data(), kColumns, kStreams});
    for (float* key = keys.data(); key < keys.data() + kAll; key += kColumns) {
      table.match_stream(key, query.data(), x.data(), kColumns, key);
    }
    sum.add(keys);
  }
  sum.add(streams);
  sum.add(past);
  return sum.value();
}

// Keys and values of two heads in rows, attention of one head over them, all or some, and their
// means.
uint64_t rows_checksum(const KernelTable& table, KvKind kind) {
  SampleRandom random(67);
  constexpr int kDim = 75, kPositions = 240, kHeads = 18, kPool = 8;
  constexpr size_t kWidth = 2 * kDim;
  const size_t stride = 2 * page_head_stride(kind, kDim);
  std::vector<std::byte> keys(4 * stride), values(4 * stride);
  const PageArgs of_keys = {kind, nullptr, keys.data(), stride, kDim, kDim, 2};
  const PageArgs pages = {kind, keys.data(), values.data(), stride, kDim, kDim, 2};
  const int32_t page_list[] = {2, 0, 3, 1};
  for (int32_t position = 0; position < kPositions; ++position) {
    const int32_t page = page_list[position / kPagePositions], slot = position % kPagePositions;
    const std::vector<float> key = random.units(kWidth), value = random.units(kWidth);
    table.store_kv({of_keys, nullptr, key.data(), 0, kWidth, &page, &slot, 0, 1});
    table.store_kv({pages, nullptr, value.data(), 0, kWidth, &page, &slot, 0, 1});
  }
  AnswerSum sum;
  sum.add(keys.data(), keys.size());
  const std::vector<float> query = random.units(size_t{kHeads} * kDim);
  const std::vector<float> sinks = random.units(kHeads);
  const uint32_t some[] = {0x80000001u, 0x00f00000u, 0, 0, ~0u, 0x12345678u, 1u, 0x8000u};
  std::vector<float> output(query.size()), entry(kDim);
  for (const uint32_t* chosen : {static_cast<const uint32_t*>(nullptr), &some[0]}) {
    table.attention_chosen({pages, 1, page_list, kPositions - 1, 0, query.data(), kHeads, 0.5f,
                            sinks.data(), output.data(), chosen, true});
    sum.add(output);
  }
  for (int32_t last = kPool - 1; last < kPositions; last += kPool) {
    table.compress({of_keys, nullptr, page_list, last, kPool, false, kDim, 0, kDim, entry.data()});
    sum.add(entry);
  }
  return sum.value();
}

uint64_t math_checksum() {
  SampleRandom random(31);
  AnswerSum sum;
  for (int i = 0; i < 5000; ++i) {
    const float x = random.unit() * 90.0f;
    sum.add(exp_f32(x));
    sum.add(sigmoid_f32(x));
    sum.add(softplus_f32(x));
    sum.add(log_f32(x * x + 0x1p-100f));
    const double y = double{random.unit()} * 700.0;
    sum.add(exp_f64(y));
    sum.add(log_f64(y * y + 0x1p-1000));
    const SinCos turned = sincos_f64(y * 14000.0);
    sum.add(turned.sine);
    sum.add(turned.cosine);
  }
  return sum.value();
}

}  // namespace

std::vector<FixedAnswer> fixed_answers(const KernelTable& table) {
  return {
      {"matmul", 0xe7324bc0bd79861du, matmul_checksum(table)},
      {"quantised", 0xcffca5d0add9333eu, quantised_checksum(table)},
      {"attention", 0x45d187a592ec1113u, attention_checksum(table, {})},
      {"attention with sinks", 0x737c4a8ad0b59e34u, attention_checksum(table, {.has_sinks = true})},
      {"layers", 0x7855ebae0c86e505u, layers_checksum(table)},
      {"clamped_swiglu", 0xf4e5e5af5f92176cu, swiglu_checksum(table)},
      {"recurrent", 0xf35011a8f7f158a8u, recurrent_checksum(table)},
      {"attention over bf16", 0x72657b483cb9d024u, stored_checksum(table, KvKind::kBF16)},
      {"attention over f16", 0xd6ecbd2615e6e420u, stored_checksum(table, KvKind::kF16)},
      {"attention over q8", 0x8c75ef1be04a9eeeu, stored_checksum(table, KvKind::kQ8)},
      {"attention over chosen f32", 0x9e048a31ceae1a26u, chosen_checksum(table, KvKind::kF32)},
      {"attention over chosen q8", 0x4ff89ac2495cd206u, chosen_checksum(table, KvKind::kQ8)},
      {"pools of f32", 0xbc02ed254449cf64u, pools_checksum(table, KvKind::kF32)},
      {"pools of q8", 0x760c9e324ebc19f6u, pools_checksum(table, KvKind::kQ8)},
      {"compressed f32", 0x9807a9ee1a65c1c9u, compressed_checksum(table, KvKind::kF32)},
      {"compressed q8", 0x404cfa683dfc880eu, compressed_checksum(table, KvKind::kQ8)},
      {"streams", 0x93fd46db92f8df08u, streams_checksum(table)},
      {"matches", 0xe329ca34fd39c71bu, matches_checksum(table)},
      {"rows of f32", 0x221b4af22d24cbf3u, rows_checksum(table, KvKind::kF32)},
      {"rows of q8", 0xe4b54d9587b3100au, rows_checksum(table, KvKind::kQ8)}};
}

FixedAnswer fixed_math_answer() {
  return {"math", 0x7c0164913240931eu, math_checksum()};
}

}  // namespace lockstep

#include "device/vulkan/kernel_trial.h"

#include <bit>
#include <cmath>

#include "base/check.h"
#include "kernels/answers/sample_quantised.h"
#include "kernels/isa.h"

namespace lockstep::gpu {
namespace {

using Codes = PackedCodes;
using Scales = PackedScales;

constexpr int kRows = 18;  // two tiles
// Few tokens share the terms of a row among invocations, more do not.
constexpr int kTokenCounts[] = {1, static_cast<int>(kItemsOfGroup)};

// The formats that device/packing makes.
std::vector<QuantisedFormat> formats_with_scales() {
  std::vector<QuantisedFormat> formats;
  const auto add = [&](Codes codes, std::initializer_list<Scales> all, int code_offset) {
    for (const Scales scales : all) {
      if (codes != Codes::kFp8) formats.push_back({codes, scales, true, code_offset});
      formats.push_back({codes, scales, false, code_offset});
    }
  };
  for (const Codes codes :
       {Codes::kBits2, Codes::kBits3, Codes::kBits4, Codes::kBits5, Codes::kBits6, Codes::kBits8}) {
    add(codes, {Scales::kF32Bias, Scales::kF16Bias, Scales::kBF16Bias}, 0);
  }
  for (const Codes codes : {Codes::kBits4, Codes::kBits8}) {
    const int middle = codes == Codes::kBits4 ? 8 : 128;
    add(codes, {Scales::kF32, Scales::kF16, Scales::kBF16}, middle);
    add(codes, {Scales::kF32Zero, Scales::kF16Zero, Scales::kBF16Zero}, 0);
  }
  add(Codes::kBits5, {Scales::kF16}, 16);
  add(Codes::kBits2, {Scales::kSuperMinHalves}, 0);
  add(Codes::kBits3, {Scales::kSuperHalves}, 4);
  add(Codes::kBits4, {Scales::kSuperMin}, 0);
  add(Codes::kBits5, {Scales::kSuperMin}, 0);
  add(Codes::kBits6, {Scales::kSuperHalves}, 32);
  add(Codes::kTable4, {Scales::kE8M0, Scales::kE4M3Halves, Scales::kF16, Scales::kSuper}, 128);
  add(Codes::kFp8, {Scales::kTileF32, Scales::kF32, Scales::kE8M0}, 0);
  return formats;
}

const char* name_of(Codes codes) {
  switch (codes) {
    case Codes::kF32:
      return "products of float32 weights";
    case Codes::kF16:
      return "products of float16 weights";
    case Codes::kBF16:
      return "products of bfloat16 weights";
    case Codes::kBits2:
      return "products of 2-bit weights";
    case Codes::kBits3:
      return "products of 3-bit weights";
    case Codes::kBits4:
      return "products of 4-bit weights";
    case Codes::kBits5:
      return "products of 5-bit weights";
    case Codes::kBits6:
      return "products of 6-bit weights";
    case Codes::kBits8:
      return "products of 8-bit weights";
    case Codes::kTable4:
      return "products of 4-bit floats and tables";
    case Codes::kFp8:
      return "products of 8-bit floats";
    case Codes::kColumnBits4:
      return "products of columns of 4-bit codes";
    case Codes::kColumnBits8:
      return "products of columns of 8-bit codes";
    case Codes::kColumnFp8:
      return "products of columns of 8-bit floats";
  }
  return "products";
}

// Whether a result may be another one on a device that flushes subnormal numbers: some samples have
// subnormal scales.
bool is_tiny(uint32_t bits) {
  return std::fabs(std::bit_cast<float>(bits)) < 0x1p-100f;
}

std::vector<uint32_t> words_of(const std::vector<float>& values) {
  std::vector<uint32_t> words;
  words.reserve(values.size());
  for (const float value : values) words.push_back(std::bit_cast<uint32_t>(value));
  return words;
}

// Some positions of one head of keys and values, in pages.
struct StoredHead {
  static constexpr int kHeadDim = 36, kPositions = 90, kQueries = 3;  // two pages

  KvKind kind;
  std::vector<std::byte> state;  // of each page its keys, then its values
  std::vector<float> keys, values;
  std::vector<int32_t> page, slot;

  StoredHead(SampleRandom& random, KvKind of)
      : kind(of), state(4 * page_head_stride(of, kHeadDim)) {
    keys = random.units(size_t{kPositions} * kHeadDim);
    values = random.units(keys.size());
    for (int i = 0; i < kPositions; ++i) {
      page.push_back(1 - i / kPagePositions);
      slot.push_back(i % kPagePositions);
    }
  }

  size_t stride() const { return page_head_stride(kind, kHeadDim); }
  PageArgs pages() {
    return {kind, state.data(), state.data() + stride(), 2 * stride(), kHeadDim, kHeadDim, 1};
  }
};

// Collects operations and the results that they must have, then runs them all at once.
class KernelTrial {
 public:
  explicit KernelTrial(VulkanDevice& device) : device_(device) {}

  Status add_product_by_column(Codes codes);
  Status add_product(const QuantisedFormat& format);
  Status add_norm();
  // Stores keys and values; with the usual kind also attention over them, whose kernels take
  // software GPUs long to compile.
  Status add_head(KvKind kind);
  // A convolution, decays, and the delta rule, of tokens that continue each other's state.
  Status add_recurrent();
  Result<std::optional<std::string>> run();

 private:
  struct Expected {
    std::string kernel;
    Slice result;
    std::vector<uint32_t> words;
    bool may_be_flushed = false;  // where they are tiny
  };

  template <class Value>
  Result<Slice> put(const std::vector<Value>& values, Access access = Access::kDevice) {
    const auto bytes = std::as_bytes(std::span(values));
    const Slice slice{TRY(device_.allocate(bytes.size(), access)), 0};
    device_.write(slice, bytes);
    return slice;
  }
  // A place for results.
  Result<Slice> expect(const std::string& kernel, std::vector<uint32_t> words);
  struct Products {
    std::string kernel;
    MatrixId id{};
    Slice x;
    int tokens = 0;
    int subtrees = 1;
  };
  Status add_products(const Products& products, const MatmulPart& part);
  // Products of rows that the operation before makes, and that its kernel therefore also prepares.
  Status add_products_of(const std::string& kernel, Slice rows, const std::vector<float>& values,
                         int tokens);
  Status add_attention(StoredHead& head, const LayerPages& pages);

  VulkanDevice& device_;
  const KernelTable& scalar_ = *available_kernels().front();
  SampleRandom random_{7};
  const SamplePlan plan_ = plan_of({{34, 5}, {3}});
  std::vector<Operation> operations_;
  std::vector<Expected> expected_;
};

Result<Slice> KernelTrial::expect(const std::string& kernel, std::vector<uint32_t> words) {
  const Slice place = TRY(put(std::vector<uint32_t>(words.size()), Access::kHost));
  expected_.push_back({kernel, place, std::move(words)});
  return place;
}

Status KernelTrial::add_products(const Products& products, const MatmulPart& part) {
  const auto subtree = static_cast<size_t>(products.tokens) * kRows;
  std::vector<float> wanted(static_cast<size_t>(products.subtrees) * subtree);
  scalar_.matmul({&part, 1, 0, tile_count(kRows), products.tokens, wanted.data(), kRows, subtree});
  const Slice result = TRY(expect(products.kernel, words_of(wanted)));
  expected_.back().may_be_flushed = true;
  operations_.push_back(Matmul{products.x, products.tokens, {{products.id, result}}});
  return Ok{};
}

Status KernelTrial::add_product_by_column(Codes codes) {
  const MatrixByColumn matrix =
      random_matrix(random_, codes, kRows, plan_.columns, SampleKind::kPlain);
  const PackedMatrix view = matrix.view(plan_.steps);
  const MatrixId id = TRY(device_.keep_packed(view, {}));
  const auto columns = static_cast<size_t>(plan_.columns);
  for (const int tokens : kTokenCounts) {
    const std::vector<float> input = random_.units(static_cast<size_t>(tokens) * columns);
    const Slice x = TRY(put(input));
    TRY(add_products({name_of(codes), id, x, tokens, plan_.subtrees},
                     {&view, input.data(), columns * sizeof(float)}));
  }
  return Ok{};
}

Status KernelTrial::add_product(const QuantisedFormat& format) {
  const QuantisedMatrix matrix(random_, format, kRows, plan_.steps);
  const PackedMatrix view = matrix.view();
  const MatrixId id = TRY(device_.keep_packed(view, matrix.blocks()));
  for (const int tokens : kTokenCounts) {
    const std::vector<float> input =
        random_.units(static_cast<size_t>(tokens) * static_cast<size_t>(plan_.columns));
    const PreparedInput prepared = prepare_input(scalar_, matrix, input, tokens);
    const Slice x = TRY(put(input));
    TRY(add_products({name_of(format.codes), id, x, tokens, plan_.subtrees},
                     {&view, prepared.token(0), prepared.stride}));
  }
  return Ok{};
}

Status KernelTrial::add_products_of(const std::string& kernel, Slice rows,
                                    const std::vector<float>& values, int tokens) {
  const int columns = static_cast<int>(values.size()) / tokens;
  const SamplePlan plan = plan_of({{columns}});
  for (const bool has_integer_input : {true, false}) {
    const QuantisedMatrix matrix(random_, {Codes::kBits8, Scales::kF32, has_integer_input, 128},
                                 kRows, plan.steps);
    const PackedMatrix view = matrix.view();
    const MatrixId id = TRY(device_.keep_packed(view, matrix.blocks()));
    const PreparedInput prepared = prepare_input(scalar_, matrix, values, tokens);
    TRY(add_products({kernel, id, rows, tokens}, {&view, prepared.token(0), prepared.stride}));
  }
  return Ok{};
}

Status KernelTrial::add_norm() {
  constexpr int kTokens = 16, kColumns = 300;
  std::vector<float> x = random_.units(kTokens * kColumns);
  const std::vector<float> weight = random_.units(kColumns);
  // The squares of one lane are most of the sum, so that its rounding shows.
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % kColumns % kNormLanes != 0) x[i] *= 0x1p-8f;
  }
  std::vector<float> y(x.size());
  scalar_.rms_norm(
      {x.data(), kColumns, weight.data(), kColumns, 1e-6f, 0, kTokens, y.data(), kColumns});
  const Slice from = TRY(put(x)), by = TRY(put(weight));
  const Slice result = TRY(expect("norms", words_of(y)));
  operations_.push_back(RmsNorm{from, by, kTokens, kColumns, 1e-6f, result});
  return add_products_of("norms", result, y, kTokens);
}

Status KernelTrial::add_head(KvKind kind) {
  StoredHead head(random_, kind);
  constexpr auto kDim = static_cast<size_t>(StoredHead::kHeadDim);
  scalar_.store_kv({head.pages(), head.keys.data(), head.values.data(), kDim, kDim,
                    head.page.data(), head.slot.data(), 0, StoredHead::kPositions});
  std::vector<uint32_t> words(head.state.size() / sizeof(uint32_t));
  std::memcpy(words.data(), head.state.data(), head.state.size());
  const Slice state = TRY(expect("the storing of keys and values", std::move(words)));
  const size_t elements = head.stride() / Slice::kElementBytes;
  const LayerPages pages{.kind = kind,
                         .keys = state,
                         .values = {state.buffer, elements},
                         .page_stride = 2 * elements,
                         .head_dim = StoredHead::kHeadDim,
                         .value_dim = StoredHead::kHeadDim,
                         .kv_heads = 1};
  StoreKv store{.pages = pages,
                .keys_stride = StoredHead::kHeadDim,
                .values_stride = StoredHead::kHeadDim,
                .tokens = StoredHead::kPositions};
  store.keys = TRY(put(head.keys));
  store.values = TRY(put(head.values));
  store.page = TRY(put(head.page));
  store.slot = TRY(put(head.slot));
  operations_.push_back(store);
  return kind == KvKind::kF16 ? add_attention(head, pages) : Status(Ok{});
}

Status KernelTrial::add_attention(StoredHead& head, const LayerPages& pages) {
  const std::vector<int32_t> list{1, 0};
  const int32_t position = StoredHead::kPositions - 1;
  std::vector<float> query = random_.units(size_t{StoredHead::kQueries} * StoredHead::kHeadDim);
  for (float& q : query) q *= 5.0f;
  const std::vector<float> sinks = random_.units(StoredHead::kQueries);
  std::vector<float> output(query.size());
  scalar_.attention({head.pages(), 0, list.data(), position, 0, query.data(), StoredHead::kQueries,
                     0.5f, sinks.data(), output.data()});
  Attention op{.pages = pages,
               .tokens = 1,
               .heads = StoredHead::kQueries,
               .heads_per_kv = StoredHead::kQueries,
               .scale = 0.5f,
               .has_sinks = true};
  op.query = TRY(put(query));
  op.positions = TRY(put(std::vector<int32_t>{position}));
  op.page_lists = TRY(put(list));
  op.list_offsets = TRY(put(std::vector<int32_t>{0}));
  op.sinks = TRY(put(sinks));
  op.output = TRY(expect("attention", words_of(output)));
  operations_.push_back(op);
  return Ok{};
}

Status KernelTrial::add_recurrent() {
  constexpr int kTokens = 3, kTaps = 4, kDim = 40, kColumns = 70;
  constexpr size_t kPast = (kTaps - 1) * kDim, kState = kPast + kDim * kColumns;
  std::vector<float> memory = random_.units(kState), output(kTokens * kColumns);
  std::vector<float> key = random_.units(kTokens * kDim), decays = random_.units(kTokens * kDim);
  const std::vector<float> query = random_.units(key.size()), taps = random_.units(kTaps * kDim);
  const std::vector<float> value = random_.units(output.size()), rates = random_.units(kTokens);
  const std::vector<float> bias = random_.units(kDim), slopes = random_.units(kDim);
  Convolve convolve{.taps = kTaps, .tokens = kTokens};
  DeltaRule rule{.state_offset = kPast,
                 .tokens = kTokens,
                 .key_heads = 1,
                 .value_heads = 1,
                 .key_dim = kDim,
                 .value_dim = kColumns,
                 .decays = kDim};
  rule.states.from = TRY(put(std::vector<int32_t>{-1, 0, 0}));
  rule.states.to = TRY(put(std::vector<int32_t>{0, 0, 0}));
  rule.states.stride = kState;
  rule.query = TRY(put(query));
  rule.value = TRY(put(value));
  rule.rate = TRY(put(rates));
  const Slice x = TRY(put(key)), sum = TRY(put(decays));
  for (size_t token = 0; token < kTokens; ++token) {
    float* const before = token == 0 ? nullptr : memory.data();
    float* const row = key.data() + token * kDim;
    scalar_.convolve({row, taps.data(), before, memory.data(), row, kTaps, kDim, kDim});
    scalar_.decay(bias.data(), slopes.data(), decays.data() + token * kDim, kDim);
    scalar_.delta_rule({before ? before + kPast : nullptr, memory.data() + kPast,
                        query.data() + token * kDim, row, value.data() + token * kColumns,
                        decays.data() + token * kDim, 1, rates[token], kDim, kColumns,
                        output.data() + token * kColumns});
  }
  rule.key = TRY(expect("convolutions", words_of(key)));
  rule.decay = TRY(expect("decays", words_of(decays)));
  rule.output = TRY(expect("the delta rule", words_of(output)));
  rule.states.memory = TRY(expect("the states of recurrent layers", words_of(memory)));
  convolve.states = rule.states;
  const Slice weights = TRY(put(taps)), biases = TRY(put(bias)), factors = TRY(put(slopes));
  convolve.parts[0] = {x, weights, kDim, 0, rule.key};
  operations_.push_back(convolve);
  operations_.push_back(CopyColumns{sum, kTokens, kDim, rule.decay, kDim});
  operations_.push_back(Decay{rule.decay, biases, factors, kTokens, kDim});
  operations_.push_back(rule);
  return Ok{};
}

Result<std::optional<std::string>> KernelTrial::run() {
  for (const Operation& operation : operations_) device_.queue(operation);
  TRY(device_.wait());
  for (const Expected& expected : expected_) {
    const auto found = device_.host(expected.result.buffer);
    for (size_t i = 0; i < expected.words.size(); ++i) {
      const uint32_t word = expected.words[i];
      if (std::bit_cast<uint32_t>(found[i]) == word) continue;
      if (!(expected.may_be_flushed && is_tiny(word))) return std::optional(expected.kernel);
    }
  }
  return std::optional<std::string>();
}

}  // namespace

Result<std::optional<std::string>> find_wrong_kernel(VulkanDevice& device) {
  KernelTrial trial(device);
  for (const Codes codes : kCodesByColumn) TRY(trial.add_product_by_column(codes));
  for (const QuantisedFormat& format : formats_with_scales()) TRY(trial.add_product(format));
  TRY(trial.add_norm());
  for (const KvKind kind : {KvKind::kF32, KvKind::kBF16, KvKind::kF16, KvKind::kQ8}) {
    TRY(trial.add_head(kind));
  }
  TRY(trial.add_recurrent());
  return trial.run();
}

}  // namespace lockstep::gpu

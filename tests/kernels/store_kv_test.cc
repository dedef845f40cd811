// StoreKv writes the numbers that the definition of each kind gives (kernels/stored_kv.h).
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "kernels/stored_kv.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

constexpr std::byte kEmpty{0x5a};

// One page with `heads` heads, written token by token.
struct WrittenPage {
  KvKind kind;
  int head_dim;
  int value_dim;
  std::vector<std::byte> keys;
  std::vector<std::byte> values;

  const std::byte* head_of(const std::vector<std::byte>& of, int head) const {
    return of.data() + static_cast<size_t>(head) * page_head_stride(kind, head_dim);
  }
  // The value at `element`, whose scale, if the kind has one, is number `scale`.
  float value(const std::byte* head, size_t element, size_t scale) const {
    const std::byte* at = head + element * kv_element_bytes(kind);
    if (kind == KvKind::kF32) {
      float value = 0;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
    if (kind == KvKind::kQ8) {
      uint16_t bits = 0;
      std::memcpy(&bits, head + kv_scales_at(head_dim) + scale * 2, sizeof(bits));
      return static_cast<float>(static_cast<int8_t>(*at)) * value_of_bf16(bits);
    }
    uint16_t bits = 0;
    std::memcpy(&bits, at, sizeof(bits));
    return kind == KvKind::kBF16 ? value_of_bf16(bits) : value_of_f16(bits);
  }
  float key(int head, int slot, int column) const {
    const auto group = static_cast<size_t>(slot / kLanes),
               lane = static_cast<size_t>(slot % kLanes);
    const auto dims = static_cast<size_t>(head_dim), i = static_cast<size_t>(column);
    const auto blocks = static_cast<size_t>(kv_blocks(head_dim));
    return value(head_of(keys, head), (group * dims + i) * kLanes + lane,
                 (group * blocks + i / kBlockColumns) * kLanes + lane);
  }
  float stored_value(int head, int slot, int column) const {
    const auto position = static_cast<size_t>(slot), i = static_cast<size_t>(column);
    const auto blocks = static_cast<size_t>(kv_blocks(head_dim));
    return value(head_of(values, head), position * static_cast<size_t>(head_dim) + i,
                 position * blocks + i / kBlockColumns);
  }
};

struct PageShape {
  int heads;
  int head_dim;
  int value_dim;
};

// Token i is at slots[i]. No keys: only values are written.
WrittenPage write_page(const KernelTable& table, KvKind kind, const PageShape& shape,
                       const std::vector<float>& keys, const std::vector<float>& values,
                       const std::vector<int32_t>& slots) {
  const auto heads = static_cast<size_t>(shape.heads);
  const size_t bytes = heads * page_head_stride(kind, shape.head_dim);
  WrittenPage page = {kind, shape.head_dim, shape.value_dim, {}, {}};
  page.keys.assign(bytes, kEmpty);
  page.values.assign(bytes, kEmpty);
  const std::vector<int32_t> numbers(slots.size(), 0);
  table.store_kv({.pages = {kind, page.keys.data(), page.values.data(), bytes, shape.head_dim,
                            shape.value_dim, shape.heads},
                  .keys = keys.empty() ? nullptr : keys.data(),
                  .values = values.data(),
                  .keys_stride = heads * static_cast<size_t>(shape.head_dim),
                  .values_stride = heads * static_cast<size_t>(shape.value_dim),
                  .page = numbers.data(),
                  .slot = slots.data(),
                  .token_begin = 0,
                  .token_end = static_cast<int32_t>(slots.size())});
  return page;
}

size_t written_bytes(const std::vector<std::byte>& page) {
  size_t count = 0;
  for (std::byte byte : page) count += byte == kEmpty ? 0 : 1;
  return count;
}

bool has_same_bits(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// Single numbers as a kind stores them, each in a block of its own.
std::vector<float> stored_numbers(const KernelTable& table, KvKind kind,
                                  const std::vector<float>& numbers) {
  std::vector<float> stored;
  for (size_t begin = 0; begin < numbers.size(); begin += kPagePositions) {
    std::vector<float> part(kPagePositions, 0.0f);
    std::vector<int32_t> slots;
    for (size_t i = 0; i < kPagePositions; ++i) {
      if (begin + i < numbers.size()) part[i] = numbers[begin + i];
      slots.push_back(static_cast<int32_t>(i));
    }
    const WrittenPage page = write_page(table, kind, {1, 1, 1}, part, part, slots);
    for (int slot = 0; slot < kPagePositions && stored.size() < numbers.size(); ++slot) {
      CHECK(has_same_bits(page.key(0, slot, 0), page.stored_value(0, slot, 0)));
      stored.push_back(page.key(0, slot, 0));
    }
  }
  return stored;
}

// Around every number of a 16-bit format: it, the middle to the next one, and the floats next to
// both.
std::vector<float> border_numbers(float (*value_of)(uint16_t)) {
  std::vector<float> numbers;
  for (uint32_t bits = 0; bits < 0x8000u; bits += 7) {
    const float low = value_of(static_cast<uint16_t>(bits));
    const float high = value_of(static_cast<uint16_t>(bits + 1));
    if (!std::isfinite(low) || !std::isfinite(high)) continue;
    const auto middle = static_cast<float>((double{low} + double{high}) / 2);
    for (float at : {low, middle}) {
      numbers.insert(numbers.end(),
                     {at, -at, std::nextafterf(at, INFINITY), std::nextafterf(at, -INFINITY)});
    }
  }
  return numbers;
}

const std::vector<float> kExtremes = {
    0.0f,       -0.0f,       65504.0f,         65519.9f,        65520.0f,
    -1e10f,     FLT_MAX,     -FLT_MAX,         0x1.fep127f,     0x1.ffp127f,
    FLT_MIN,    0x1p-149f,   0x1p-24f,         0x1p-25f,        0x1.000002p-25f,
    0x1.8p-24f, kBlockLeast, 0x1.fffffep-101f, 0x1.fffffep119f, INFINITY,
    -INFINITY,  NAN};

}  // namespace

TEST_CASE("a stored key or value is the number that the definition of its kind gives") {
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    std::vector<float> numbers = kExtremes;
    for (auto value_of : {value_of_bf16, value_of_f16}) {
      const auto more = border_numbers(value_of);
      numbers.insert(numbers.end(), more.begin(), more.end());
    }
    SampleRandom random(3);
    for (int i = 0; i < 20000; ++i) {
      numbers.push_back(std::bit_cast<float>(static_cast<uint32_t>(random.bits())));
    }
    const std::vector<float> expected = rounded_rows(kind, numbers, 1);
    const std::vector<float> stored = stored_numbers(*table, kind, numbers);
    for (size_t i = 0; i < numbers.size(); ++i) {
      CAPTURE(numbers[i]);
      CAPTURE(stored[i]);
      REQUIRE(has_same_bits(stored[i], expected[i]));
    }
  }
}

TEST_CASE("16-bit kinds keep finite numbers finite, and infinities and NaNs as they are") {
  for (const KernelTable* table : available_kernels()) {
    for (KvKind kind : {KvKind::kBF16, KvKind::kF16}) {
      const auto stored = stored_numbers(*table, kind, kExtremes);
      for (size_t i = 0; i < stored.size(); ++i) {
        CHECK(std::isfinite(stored[i]) == std::isfinite(kExtremes[i]));
        CHECK(std::isnan(stored[i]) == std::isnan(kExtremes[i]));
      }
    }
  }
}

TEST_CASE("the bits of a stored NaN are those of the scalar table") {
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    for (uint32_t bits : {0x7fc00000u, 0xffc00000u, 0x7f800001u, 0xff812345u, 0x7fffffffu}) {
      const std::vector<float> row(33, std::bit_cast<float>(bits));
      const auto page = write_page(*table, kind, {1, 33, 33}, row, row, {5});
      const auto scalar = write_page(scalar_kernels(), kind, {1, 33, 33}, row, row, {5});
      CHECK(page.keys == scalar.keys);
      CHECK(page.values == scalar.values);
    }
  }
}

TEST_CASE("store_kv puts sixteen keys side by side and leaves all other slots alone") {
  struct Case {
    int head_dim, value_dim;
  };
  const std::vector<int32_t> slots = {0, 1, 15, 16, 17, 63, 40};
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    for (const Case c : {Case{10, 10}, Case{33, 31}, Case{75, 75}, Case{128, 96}, Case{1, 1}}) {
      SampleRandom random(6);
      std::vector<float> keys(slots.size() * 2 * static_cast<size_t>(c.head_dim));
      std::vector<float> values(slots.size() * 2 * static_cast<size_t>(c.value_dim));
      for (float& key : keys) key = draw(random, SampleKind::kNasty);
      for (float& value : values) value = draw(random, SampleKind::kNasty);
      const auto page = write_page(*table, kind, {2, c.head_dim, c.value_dim}, keys, values, slots);
      const auto rounded_keys = rounded_rows(kind, keys, c.head_dim);
      const auto rounded_values = rounded_rows(kind, values, c.value_dim);
      size_t at_key = 0, at_value = 0;
      for (int slot : slots) {
        for (int head = 0; head < 2; ++head) {
          for (int i = 0; i < c.head_dim; ++i) {
            REQUIRE(has_same_bits(page.key(head, slot, i), rounded_keys[at_key++]));
          }
          for (int i = 0; i < c.value_dim; ++i) {
            REQUIRE(has_same_bits(page.stored_value(head, slot, i), rounded_values[at_value++]));
          }
        }
      }
      const auto bytes_of = [&](int columns) {
        const auto blocks = static_cast<size_t>(kv_blocks(columns));
        const size_t scales = kind == KvKind::kQ8 ? blocks * 2 : 0;
        return 2 * slots.size() * (static_cast<size_t>(columns) * kv_element_bytes(kind) + scales);
      };
      CHECK(written_bytes(page.keys) <= bytes_of(c.head_dim));
      CHECK(written_bytes(page.values) <= bytes_of(c.value_dim));
    }
  }
}

TEST_CASE("values that are stored without keys are the same, and no key is touched") {
  const std::vector<int32_t> slots = {63, 2, 17};
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    for (const PageShape& shape : {PageShape{1, 24, 24}, PageShape{2, 75, 41}}) {
      SampleRandom random(8);
      const size_t rows = slots.size() * static_cast<size_t>(shape.heads);
      const auto keys = random.units(rows * static_cast<size_t>(shape.head_dim));
      const auto values = random.units(rows * static_cast<size_t>(shape.value_dim));
      const WrittenPage page = write_page(*table, kind, shape, {}, values, slots);
      CHECK(page.values == write_page(*table, kind, shape, keys, values, slots).values);
      CHECK(written_bytes(page.keys) == 0);
    }
  }
}

}  // namespace lockstep

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "kernels/stored_kv.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

// A cache whose unused slots hold garbage, and the values that it stands for.
struct Cache {
  KvKind kind;
  int head_dim;
  int value_dim;
  int kv_heads;
  int positions;
  std::vector<int32_t> page_list;
  std::vector<std::byte> keys;
  std::vector<std::byte> values;
  std::vector<float> stored_keys;    // (positions, kv_heads, head_dim), rounded
  std::vector<float> stored_values;  // (positions, kv_heads, value_dim), rounded

  size_t page_stride() const {
    return static_cast<size_t>(kv_heads) * page_head_stride(kind, head_dim) + 64;
  }
  PageArgs pages() {
    return {kind, keys.data(), values.data(), page_stride(), head_dim, value_dim, kv_heads};
  }
};

// The contents of pages before and around the stored values: NaN, or large, in every kind.
std::byte garbage(bool is_nan) {
  return std::byte{is_nan ? uint8_t{0xff} : uint8_t{0x7b}};
}

struct CacheShape {
  KvKind kind = KvKind::kF32;
  int head_dim = 0;
  int kv_heads = 1;
  int positions = 0;
  int value_dim = 0;  // 0: head_dim
  bool nan_garbage = true;
};

// Stores `keys` and `values` in two calls.
Cache filled(const KernelTable& table, const CacheShape& shape, const std::vector<float>& keys,
             const std::vector<float>& values) {
  const int value_dim = shape.value_dim == 0 ? shape.head_dim : shape.value_dim;
  Cache cache = {
      shape.kind, shape.head_dim, value_dim, shape.kv_heads, shape.positions, {}, {}, {}, {}, {}};
  const int pages = (shape.positions + kPagePositions - 1) / kPagePositions;
  for (int page = 0; page < pages; ++page) cache.page_list.push_back((page * 5 + 2) % 7);
  cache.keys.assign(7 * cache.page_stride(), garbage(shape.nan_garbage));
  cache.values.assign(7 * cache.page_stride(), garbage(shape.nan_garbage));
  std::vector<int32_t> page_of, slot_of;
  for (int position = 0; position < shape.positions; ++position) {
    page_of.push_back(cache.page_list[static_cast<size_t>(position / kPagePositions)]);
    slot_of.push_back(position % kPagePositions);
  }
  const auto heads = static_cast<size_t>(shape.kv_heads);
  StoreKvArgs args = {
      .pages = cache.pages(),
      .keys = keys.data(),
      .values = values.data(),
      .keys_stride = heads * static_cast<size_t>(shape.head_dim),
      .values_stride = heads * static_cast<size_t>(value_dim),
      .page = page_of.data(),
      .slot = slot_of.data(),
      .token_begin = 0,
      .token_end = shape.positions / 2,
  };
  table.store_kv(args);
  args.token_begin = shape.positions / 2;
  args.token_end = shape.positions;
  table.store_kv(args);
  cache.stored_keys = rounded_rows(shape.kind, keys, shape.head_dim);
  cache.stored_values = rounded_rows(shape.kind, values, value_dim);
  return cache;
}

Cache fill_cache(const KernelTable& table, uint64_t seed, const CacheShape& shape) {
  SampleRandom random(seed);
  const size_t rows = static_cast<size_t>(shape.kv_heads) * static_cast<size_t>(shape.positions);
  const int value_dim = shape.value_dim == 0 ? shape.head_dim : shape.value_dim;
  const std::vector<float> keys = random.units(rows * static_cast<size_t>(shape.head_dim));
  const std::vector<float> values = random.units(rows * static_cast<size_t>(value_dim));
  return filled(table, shape, keys, values);
}

Cache fill_cache(const KernelTable& table, uint64_t seed, int head_dim, int kv_heads, int positions,
                 bool nan_garbage = true) {
  return fill_cache(table, seed,
                    {.head_dim = head_dim,
                     .kv_heads = kv_heads,
                     .positions = positions,
                     .nan_garbage = nan_garbage});
}

std::vector<float> attend(const KernelTable& table, Cache& cache, int kv_head, int position,
                          const std::vector<float>& query, int heads, float scale, int window = 0,
                          const float* sinks = nullptr) {
  const size_t count = static_cast<size_t>(heads) * static_cast<size_t>(cache.value_dim);
  std::vector<float> output(count + 8, kUntouched);
  table.attention({
      .pages = cache.pages(),
      .kv_head = kv_head,
      .page_list = cache.page_list.data(),
      .position = position,
      .window = window,
      .query = query.data(),
      .heads = heads,
      .scale = scale,
      .sinks = sinks,
      .output = output.data(),
  });
  return output;
}

// Softmax attention of one head in double precision, and a bound on the float32 error.
void check_head(const Cache& cache, int kv_head, int position, const float* query, float scale,
                const float* output, int first = 0, float sink = -INFINITY) {
  const auto head_dim = static_cast<size_t>(cache.head_dim);
  const auto value_dim = static_cast<size_t>(cache.value_dim);
  const auto stored = [&](const std::vector<float>& from, int at, size_t columns) {
    const size_t row = static_cast<size_t>(at) * static_cast<size_t>(cache.kv_heads);
    return from.data() + (row + static_cast<size_t>(kv_head)) * columns;
  };
  std::vector<double> scores;
  double score_error = 0;
  for (int at = first; at <= position; ++at) {
    const float* key = stored(cache.stored_keys, at, head_dim);
    double score = 0;
    double magnitude = 0;
    for (size_t i = 0; i < head_dim; ++i) {
      score += double{query[i]} * double{key[i]};
      magnitude += std::fabs(double{query[i]} * double{key[i]});
    }
    scores.push_back(score * double{scale});
    score_error = std::max(score_error,
                           magnitude * double{scale} * 0x1p-24 * static_cast<double>(head_dim + 4));
  }
  const double maximum = std::max(double{sink}, *std::max_element(scores.begin(), scores.end()));
  double sum = std::exp(double{sink} - maximum);
  for (double& score : scores) sum += score = std::exp(score - maximum);
  // A probability has the errors of its score and of the maximum, and so has their sum; |value| <=
  // 1; each position rounds once, with a few more operations per page and exp (2 ulp).
  const double bound = 4 * score_error + (2.0 * position + 100) * 0x1p-24;
  for (size_t i = 0; i < value_dim; ++i) {
    double value = 0;
    for (int at = first; at <= position; ++at) {
      value += scores[static_cast<size_t>(at - first)] / sum *
               double{stored(cache.stored_values, at, value_dim)[i]};
    }
    REQUIRE(std::fabs(double{output[i]} - value) <= bound);
  }
}

// Makes one stored position NaN in the pages.
void poison(Cache& cache, int position) {
  const auto head_dim = static_cast<size_t>(cache.head_dim);
  const size_t bytes = kv_element_bytes(cache.kind);
  const auto blocks = static_cast<size_t>(kv_blocks(cache.head_dim));
  const size_t scales = kv_scales_at(cache.head_dim);
  const size_t page =
      static_cast<size_t>(cache.page_list[static_cast<size_t>(position / kPagePositions)]);
  const auto slot = static_cast<size_t>(position % kPagePositions);
  const size_t group = slot / kLanes, lane = slot % kLanes;
  const auto spoil = [](std::byte* at, size_t count) { std::memset(at, 0xff, count); };
  for (size_t head = 0; head < static_cast<size_t>(cache.kv_heads); ++head) {
    const size_t at =
        page * cache.page_stride() + head * page_head_stride(cache.kind, cache.head_dim);
    std::byte* keys = cache.keys.data() + at;
    std::byte* values = cache.values.data() + at;
    for (size_t i = 0; i < head_dim; ++i) {
      spoil(keys + ((group * head_dim + i) * kLanes + lane) * bytes, bytes);
    }
    spoil(values + slot * head_dim * bytes, head_dim * bytes);
    if (cache.kind != KvKind::kQ8) continue;
    for (size_t i = 0; i < blocks; ++i) {
      spoil(keys + scales + ((group * blocks + i) * kLanes + lane) * 2, 2);
    }
    spoil(values + scales + slot * blocks * 2, blocks * 2);
  }
}

}  // namespace

TEST_CASE("a window attends to the last positions only, and never reads earlier ones") {
  constexpr int kHeadDim = 24, kHeads = 3, kPositions = 201;
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    Cache cache = fill_cache(
        *table, 33, {.kind = kind, .head_dim = kHeadDim, .kv_heads = 2, .positions = kPositions});
    SampleRandom random(34);
    const std::vector<float> query = random.units(kHeads * kHeadDim);
    for (int position : {0, 15, 63, 64, 130, 200}) {
      const auto whole = attend(*table, cache, 1, position, query, kHeads, 0.5f);
      CHECK(attend(*table, cache, 1, position, query, kHeads, 0.5f, 1000) == whole);
      CHECK(attend(*table, cache, 1, position, query, kHeads, 0.5f, position + 1) == whole);
      for (int window : {1, 2, 16, 17, 64, 65, 100}) {
        if (window > position) continue;
        // The same as a softmax over the window by definition, and the same bits with NaN before
        // it.
        const auto seen = attend(*table, cache, 1, position, query, kHeads, 0.5f, window);
        Cache poisoned = cache;
        const int first = position + 1 - window;
        for (int at = 0; at < first; ++at) poison(poisoned, at);
        CHECK(attend(*table, poisoned, 1, position, query, kHeads, 0.5f, window) == seen);
        CHECK(attend(*available_kernels().front(), cache, 1, position, query, kHeads, 0.5f,
                     window) == seen);
        for (int head = 0; head < kHeads; ++head) {
          check_head(cache, 1, position, query.data() + head * kHeadDim, 0.5f,
                     seen.data() + head * kHeadDim, first);
        }
      }
    }
  }
}

TEST_CASE("a sink takes its share of the softmax, whatever the window and the other heads") {
  constexpr int kHeadDim = 24, kHeads = 19, kPositions = 201;  // more heads than one pass handles
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    Cache cache = fill_cache(
        *table, 35, {.kind = kind, .head_dim = kHeadDim, .kv_heads = 2, .positions = kPositions});
    SampleRandom random(36);
    const std::vector<float> query = random.units(kHeads * kHeadDim);
    std::vector<float> sinks = random.units(kHeads);
    for (size_t head = 0; head < kHeads; ++head) sinks[head] *= static_cast<float>(head);
    for (int position : {0, 15, 64, 200}) {
      for (int window : {0, 17, 100}) {
        const auto seen =
            attend(*table, cache, 1, position, query, kHeads, 0.5f, window, sinks.data());
        CHECK(attend(scalar_kernels(), cache, 1, position, query, kHeads, 0.5f, window,
                     sinks.data()) == seen);
        const int first = window == 0 ? 0 : std::max(0, position + 1 - window);
        for (int head = 0; head < kHeads; ++head) {
          check_head(cache, 1, position, query.data() + head * kHeadDim, 0.5f,
                     seen.data() + head * kHeadDim, first, sinks[static_cast<size_t>(head)]);
        }
      }
    }
    // The smallest sink changes no bit, the largest takes the whole weight.
    const auto plain = attend(*table, cache, 0, 200, query, kHeads, 0.5f);
    sinks.assign(kHeads, -INFINITY);
    CHECK(attend(*table, cache, 0, 200, query, kHeads, 0.5f, 0, sinks.data()) == plain);
    sinks.assign(kHeads, 1e30f);
    const auto nothing = attend(*table, cache, 0, 200, query, kHeads, 0.5f, 0, sinks.data());
    for (size_t i = 0; i < query.size(); ++i) REQUIRE(nothing[i] == 0.0f);
  }
}

TEST_CASE(
    "attention of every instruction set equals the scalar one and the softmax by definition") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (int head_dim : {2, 6, 16, 24, 64, 80, 128, 512}) {
      for (int heads : {1, 2, 3, 4, 7}) {
        const int positions = 201;
        if (head_dim == 512 && heads != 3) continue;
        Cache cache = fill_cache(*table, 21, head_dim, 2, positions);
        SampleRandom random(static_cast<uint64_t>(head_dim * heads));
        std::vector<float> query =
            random.units(static_cast<size_t>(heads) * static_cast<size_t>(head_dim));
        for (float& q : query) q *= 8.0f;  // scores far enough apart for small probabilities
        const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
        for (int position : {0, 1, 14, 15, 16, 63, 64, 65, 127, 128, 200}) {
          const int kv_head = position % 2;
          const auto output = attend(*table, cache, kv_head, position, query, heads, scale);
          const auto scalar =
              attend(scalar_kernels(), cache, kv_head, position, query, heads, scale);
          REQUIRE(first_difference(output, scalar) == -1);
          REQUIRE(output[static_cast<size_t>(heads) * static_cast<size_t>(head_dim)] == kUntouched);
          for (int head = 0; head < heads; ++head) {
            const size_t offset = static_cast<size_t>(head) * static_cast<size_t>(head_dim);
            check_head(cache, kv_head, position, query.data() + offset, scale,
                       output.data() + offset);
          }
        }
      }
    }
  }
}

TEST_CASE("a head's attention does not depend on the other heads") {
  for (const KernelTable* table : available_kernels()) {
    Cache cache = fill_cache(*table, 4, 48, 1, 150);
    SampleRandom random(9);
    const int heads = 35;  // more than one pass over the pages handles
    const std::vector<float> query = random.units(size_t{35} * 48);
    const auto together = attend(*table, cache, 0, 149, query, heads, 0.5f);
    for (int head = 0; head < heads; ++head) {
      const auto begin = static_cast<size_t>(head) * 48;
      const std::vector<float> one(query.begin() + head * 48, query.begin() + (head + 1) * 48);
      const auto alone = attend(*table, cache, 0, 149, one, 1, 0.5f);
      for (size_t i = 0; i < 48; ++i) REQUIRE(alone[i] == together[begin + i]);
    }
  }
}

TEST_CASE("the contents of unused slots and of gaps between heads do not change attention") {
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    for (int positions : {1, 17, 63, 65, 100}) {
      CacheShape shape{.kind = kind, .head_dim = 40, .kv_heads = 3, .positions = positions};
      Cache nan_cache = fill_cache(*table, 8, shape);
      shape.nan_garbage = false;
      Cache big_cache = fill_cache(*table, 8, shape);
      SampleRandom random(2);
      const std::vector<float> query = random.units(size_t{5} * 40);
      for (int kv_head = 0; kv_head < 3; ++kv_head) {
        const auto a = attend(*table, nan_cache, kv_head, positions - 1, query, 5, 0.2f);
        const auto b = attend(*table, big_cache, kv_head, positions - 1, query, 5, 0.2f);
        REQUIRE(first_difference(a, b) == -1);
        for (size_t i = 0; i < query.size(); ++i) REQUIRE(std::isfinite(a[i]));
      }
    }
  }
}

TEST_CASE("scores far apart give the value with the largest score") {
  for (const KernelTable* table : available_kernels()) {
    Cache cache = fill_cache(*table, 8, 16, 1, 130);
    const std::vector<float> key(cache.stored_keys.begin() + 70 * 16,
                                 cache.stored_keys.begin() + 71 * 16);
    const auto output = attend(*table, cache, 0, 129, key, 1, 1000.0f);
    double best = -1e300;
    int winner = -1;
    for (int at = 0; at < 130; ++at) {
      double score = 0;
      for (size_t i = 0; i < 16; ++i) {
        score += double{key[i]} * double{cache.stored_keys[static_cast<size_t>(at) * 16 + i]};
      }
      if (score > best) winner = at;
      best = std::max(best, score);
    }
    for (size_t i = 0; i < 16; ++i) {
      CHECK(output[i] == cache.stored_values[static_cast<size_t>(winner) * 16 + i]);
    }
  }
}

TEST_CASE("attention over rounded keys and values is that over the same values as float32") {
  struct Dims {
    int head_dim, value_dim;
  };
  for (const TableAndKind& each : tables_and_kinds()) {
    const KernelTable* table = each.table;
    const KvKind kind = each.kind;
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    for (const Dims dims : {Dims{1, 1}, Dims{16, 7}, Dims{31, 31}, Dims{33, 33}, Dims{64, 64},
                            Dims{75, 70}, Dims{96, 50}, Dims{128, 128}, Dims{576, 512}}) {
      const CacheShape shape{.kind = kind,
                             .head_dim = dims.head_dim,
                             .kv_heads = 2,
                             .positions = 150,
                             .value_dim = dims.value_dim};
      Cache rounded = fill_cache(*table, 77, shape);
      CacheShape plain_shape = shape;
      plain_shape.kind = KvKind::kF32;
      Cache plain =
          filled(scalar_kernels(), plain_shape, rounded.stored_keys, rounded.stored_values);
      SampleRandom random(5);
      const std::vector<float> query = random.units(7 * static_cast<size_t>(dims.head_dim));
      const std::vector<float> sinks = random.units(7);
      for (int position : {0, 15, 16, 62, 63, 64, 65, 127, 128, 149}) {
        for (int window : {0, 1, 17, 65}) {
          const auto found =
              attend(*table, rounded, 1, position, query, 7, 0.7f, window, sinks.data());
          const auto expected =
              attend(scalar_kernels(), plain, 1, position, query, 7, 0.7f, window, sinks.data());
          REQUIRE(first_difference(found, expected) == -1);
        }
      }
    }
  }
}

}  // namespace lockstep

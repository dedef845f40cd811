// Attention over chosen positions, and the scores of an index, of every instruction set.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "kernels/definition.h"
#include "kernels/stored_kv.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

constexpr int kPagesMax = 4;

// Keys whose rows are also their values, in pages with garbage beyond the positions.
struct Rows {
  Rows(const KernelTable& table, KvKind kind, int head_dim, int value_dim, int positions,
       uint64_t seed)
      : positions(positions) {
    SampleRandom random(seed);
    stored = random.units(static_cast<size_t>(positions) * static_cast<size_t>(head_dim));
    const size_t stride = page_head_stride(kind, head_dim);
    keys.assign(kPagesMax * stride, std::byte{0xff});
    values.assign(kPagesMax * stride, std::byte{0xff});
    pages = {kind, keys.data(), values.data(), stride, head_dim, value_dim, 1};
    std::vector<int32_t> page, slot;
    for (int position = 0; position < positions; ++position) {
      page.push_back(list[position / kPagePositions]);
      slot.push_back(position % kPagePositions);
    }
    const auto width = static_cast<size_t>(head_dim);
    PageArgs whole = pages;
    whole.value_dim = value_dim > 0 ? head_dim : 0;
    table.store_kv({whole, stored.data(), stored.data(), width, width, page.data(), slot.data(), 0,
                    positions});
    stored = rounded_rows(kind, stored, head_dim);
  }

  const float* row(int position) const {
    return stored.data() + static_cast<size_t>(position) * static_cast<size_t>(pages.head_dim);
  }

  int positions;
  int32_t list[kPagesMax] = {2, 0, 3, 1};
  std::vector<float> stored;
  std::vector<std::byte> keys, values;
  PageArgs pages{};
};

std::vector<float> attend(const KernelTable& table, const Rows& rows, int position,
                          const std::vector<float>& query, int heads, const uint32_t* chosen,
                          const float* sinks) {
  std::vector<float> output(static_cast<size_t>(heads) * static_cast<size_t>(rows.pages.value_dim),
                            kUntouched);
  const AttentionArgs args{.pages = rows.pages,
                           .kv_head = 0,
                           .page_list = rows.list,
                           .position = position,
                           .window = 0,
                           .query = query.data(),
                           .heads = heads,
                           .scale = 0.25f,
                           .sinks = sinks,
                           .output = output.data(),
                           .chosen = chosen};
  chosen != nullptr ? table.attention_chosen(args) : table.attention(args);
  return output;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

using Mask = std::vector<uint32_t>;

Mask mask_of(const std::vector<int>& positions) {
  Mask mask(kPagesMax * kPagePositions / 32, 0);
  for (const int position : positions)
    mask[static_cast<size_t>(position / 32)] |= 1u << position % 32;
  return mask;
}

std::vector<int> all_to(int position) {
  std::vector<int> positions;
  for (int i = 0; i <= position; ++i) positions.push_back(i);
  return positions;
}

// In double precision.
void check_softmax(const Rows& rows, const std::vector<int>& chosen, const float* query,
                   const float* output) {
  std::vector<double> scores;
  double maximum = -INFINITY, sum = 0;
  for (const int position : chosen) {
    double score = 0;
    for (int i = 0; i < rows.pages.head_dim; ++i) score += double{query[i]} * rows.row(position)[i];
    scores.push_back(0.25 * score);
    maximum = std::max(maximum, scores.back());
  }
  for (double& score : scores) sum += score = std::exp(score - maximum);
  for (int i = 0; i < rows.pages.value_dim; ++i) {
    double value = 0;
    for (size_t c = 0; c < chosen.size(); ++c) value += scores[c] / sum * rows.row(chosen[c])[i];
    CHECK(std::fabs(value - double{output[i]}) < 1e-4);
  }
}

}  // namespace

TEST_CASE("attention over all positions, chosen, has the bits of attention") {
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    for (const auto& [head_dim, value_dim] : {std::pair{48, 32}, {36, 36}, {75, 41}, {17, 1}}) {
      const Rows rows(*table, kind, head_dim, value_dim, 250, 5);
      SampleRandom random(9);
      const std::vector<float> query = random.units(static_cast<size_t>(21 * head_dim));
      const std::vector<float> sinks = random.units(21);
      for (const int position : {0, 15, 63, 64, 100, 249}) {
        const Mask mask = mask_of(all_to(position));
        for (const int heads : {1, 6, 16, 21}) {
          CHECK(same_bits(attend(*table, rows, position, query, heads, mask.data(), nullptr),
                          attend(*table, rows, position, query, heads, nullptr, nullptr)));
          CHECK(same_bits(attend(*table, rows, position, query, heads, mask.data(), sinks.data()),
                          attend(*table, rows, position, query, heads, nullptr, sinks.data())));
        }
      }
    }
  }
}

TEST_CASE("attention over some positions is their softmax, with the same bits everywhere") {
  const std::vector<std::vector<int>> choices{
      {0}, {249}, {5, 70, 71, 200}, {64, 65, 66, 127}, {1, 3, 62, 63, 192, 249}};
  for (const KvKind kind : kKvKinds) {
    for (const std::vector<int>& chosen : choices) {
      const Mask mask = mask_of(chosen);
      std::vector<float> first;
      for (const KernelTable* table : available_kernels()) {
        CAPTURE(std::string(table->name));
        const Rows rows(*table, kind, 40, 33, 250, 6);
        SampleRandom random(9);
        const std::vector<float> query = random.units(18 * 40);
        const std::vector<float> output =
            attend(*table, rows, 249, query, 18, mask.data(), nullptr);
        for (size_t head = 0; head < 18; ++head) {
          check_softmax(rows, chosen, query.data() + head * 40, output.data() + head * 33);
        }
        if (first.empty()) first = output;
        CHECK(same_bits(first, output));
      }
    }
  }
}

// Keys and values of two heads, of which one is read, once with keys in groups of sixteen and once
// with keys in rows.
TEST_CASE("attention over keys in rows has the bits of attention over the same keys") {
  constexpr int kHeads = 2, kPositions = 250, kQueries = 18;
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    for (const int head_dim : {17, 48, 75}) {
      SampleRandom random(10);
      const size_t width = kHeads * static_cast<size_t>(head_dim);
      const size_t stride = kHeads * page_head_stride(kind, head_dim);
      const std::vector<float> new_keys = random.units(kPositions * width);
      const std::vector<float> new_values = random.units(kPositions * width);
      std::vector<std::byte> groups(kPagesMax * stride, std::byte{0xff});
      std::vector<std::byte> rows = groups, values = groups;
      const PageArgs in_groups = {kind,     groups.data(), values.data(), stride,
                                  head_dim, head_dim,      kHeads};
      PageArgs in_rows = in_groups, to_rows = in_groups;
      in_rows.keys = to_rows.values = rows.data();
      const int32_t list[kPagesMax] = {2, 0, 3, 1};
      std::vector<int32_t> page, slot;
      for (int position = 0; position < kPositions; ++position) {
        page.push_back(list[position / kPagePositions]);
        slot.push_back(position % kPagePositions);
      }
      table->store_kv({in_groups, new_keys.data(), new_values.data(), width, width, page.data(),
                       slot.data(), 0, kPositions});
      table->store_kv(
          {to_rows, nullptr, new_keys.data(), 0, width, page.data(), slot.data(), 0, kPositions});
      const std::vector<float> query = random.units(kQueries * static_cast<size_t>(head_dim));
      const std::vector<float> sinks = random.units(kQueries);
      for (const int position : {0, 15, 63, 64, 100, 249}) {
        const Mask mask = mask_of(all_to(position));
        std::vector<float> expected(query.size()), found = expected, chosen = expected;
        AttentionArgs args{in_groups,    1,        list,  position,     0,
                           query.data(), kQueries, 0.25f, sinks.data(), expected.data()};
        table->attention(args);
        args.pages = in_rows;
        args.keys_are_rows = true;
        args.output = found.data();
        table->attention_chosen(args);
        args.chosen = mask.data();
        args.output = chosen.data();
        table->attention_chosen(args);
        CHECK(same_bits(expected, found));
        CHECK(same_bits(expected, chosen));
      }
    }
  }
}

// Slots of other positions hold garbage here, so none of them is read.
TEST_CASE("positions that are not chosen do not matter") {
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    Rows rows(*table, kind, 40, 32, 200, 6);
    SampleRandom random(9);
    const std::vector<float> query = random.units(3 * 40);
    const Mask mask = mask_of({3, 130, 131});
    const std::vector<float> before = attend(*table, rows, 199, query, 3, mask.data(), nullptr);
    const int32_t slot = 4;
    const std::vector<float> other(40, 1e20f);
    PageArgs whole = rows.pages;
    whole.value_dim = 40;
    table->store_kv({whole, other.data(), other.data(), 40, 40, &rows.list[0], &slot, 0, 1});
    table->store_kv({whole, other.data(), other.data(), 40, 40, &rows.list[1], &slot, 0, 1});
    CHECK(same_bits(before, attend(*table, rows, 199, query, 3, mask.data(), nullptr)));
  }
}

TEST_CASE("scores of an index are chains in the order of the definition") {
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    for (const int heads : {1, 4, 7}) {
      for (const int head_dim : {8, 24, 75}) {
        const Rows rows(*table, kind, head_dim, 0, 200, 8);
        SampleRandom random(3);
        const std::vector<float> query = random.units(static_cast<size_t>(heads * head_dim));
        const std::vector<float> weights = random.units(static_cast<size_t>(heads));
        std::vector<float> scores(kPagesMax * kPagePositions, kUntouched);
        table->index_scores({.pages = rows.pages,
                             .page_list = rows.list,
                             .page_begin = 1,
                             .page_end = 4,
                             .query = query.data(),
                             .weights = weights.data(),
                             .heads = heads,
                             .page_keys = kPagePositions,
                             .scores = scores.data()});
        CHECK(scores[63] == kUntouched);
        for (int position = 64; position < 200; ++position) {
          float score = 0;
          for (int head = 0; head < heads; ++head) {
            float product = 0;
            for (int i = 0; i < head_dim; ++i) {
              product = std::fma(query[static_cast<size_t>(head * head_dim + i)],
                                 rows.row(position)[i], product);
            }
            score = std::fma(weights[static_cast<size_t>(head)], std::max(product, 0.0f), score);
          }
          CHECK(scores[static_cast<size_t>(position)] == score);
        }
      }
    }
  }
}

TEST_CASE("keys of pools equal their definition, and other slots stay as they are") {
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    for (const int pool : {1, 2, 4, 16, 64}) {
      for (const int columns : {1, 16, 24, 75}) {
        const Rows rows(*table, kind, 2 * columns, 0, 128, 8);
        SampleRandom random(3);
        const std::vector<float> bias = random.units(static_cast<size_t>(pool * columns));
        const size_t stride = page_head_stride(KvKind::kF32, columns);
        std::vector<float> found(kPagesMax * stride / sizeof(float), kUntouched);
        std::vector<float> expected = found;
        auto* const memory = reinterpret_cast<std::byte*>(found.data());
        const int count = kPagePositions / pool;
        for (const int slot : {0, count - 1}) {  // in the first page of the list
          table->pool_key({.inputs = rows.pages,
                           .pools = {KvKind::kF32, memory, nullptr, stride, columns, 0, 1},
                           .bias = bias.data(),
                           .columns = columns,
                           .pool = pool,
                           .page = rows.list[0],
                           .slot = slot});
          for (int c = 0; c < columns; ++c) {
            std::vector<float> keys, gates;
            for (int m = 0; m < pool; ++m) {
              const float* row = rows.row(slot * pool + m);
              keys.push_back(row[c]);
              gates.push_back(row[columns + c] + bias[static_cast<size_t>(m * columns + c)]);
            }
            const int group = slot / kLanes * columns + c;
            const auto at = static_cast<size_t>(group * kLanes + slot % kLanes);
            expected[static_cast<size_t>(rows.list[0]) * stride / sizeof(float) + at] =
                definition::pooled_key(keys, gates);
          }
        }
        CHECK(first_difference(found, expected) == -1);
      }
    }
  }
}

TEST_CASE("scores of pools are those of as many keys as a page has pools") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    const Rows rows(*table, KvKind::kF32, 24, 0, 256, 8);
    SampleRandom random(3);
    const std::vector<float> query = random.units(5 * 24), weights = random.units(5);
    const auto scores = [&](int page_keys) {
      std::vector<float> found(kPagesMax * kPagePositions, kUntouched);
      table->index_scores({.pages = rows.pages,
                           .page_list = rows.list,
                           .page_begin = 0,
                           .page_end = 3,
                           .query = query.data(),
                           .weights = weights.data(),
                           .heads = 5,
                           .page_keys = page_keys,
                           .scores = found.data()});
      return found;
    };
    const std::vector<float> all = scores(kPagePositions);
    for (const int page_keys : {1, 4, 16, 32}) {
      const std::vector<float> found = scores(page_keys);
      for (int i = 0; i < 3 * page_keys; ++i) {
        const int position = i / page_keys * kPagePositions + i % page_keys;
        CHECK(found[static_cast<size_t>(i)] == all[static_cast<size_t>(position)]);
      }
      CHECK(found[static_cast<size_t>(3 * page_keys)] == kUntouched);
    }
  }
}

}  // namespace lockstep

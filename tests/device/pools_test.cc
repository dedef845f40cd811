// Keys of pools of positions on the CPU, and the choice of the best pools.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "device/device_values.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

// Positions of two sequences, each with two pages, and the keys of their pools.
struct PooledIndex {
  static constexpr int kPositions = 100, kPages = 4, kColumns = 20;
  static constexpr size_t kWidth = 2 * kColumns;

  PooledIndex(const KernelTable& table, int pool)
      : pool(pool), device(std::move(open_device({.kernels = &table}).value())) {
    rows = numbers.take(2 * kPositions * static_cast<int>(kWidth));
    bias = numbers.take(pool * kColumns);
    std::vector<int32_t> page, slot;
    for (int i = 0; i < 2 * kPositions; ++i) {
      const int place = i % kPositions;
      page.push_back(kList[i / kPositions * 2 + place / kPagePositions]);
      slot.push_back(place % kPagePositions);
    }
    pools = pages_of(kColumns, Access::kHost);
    LayerPages inputs = pages_of(static_cast<int>(kWidth), Access::kDevice);
    const Slice stored = put(*device, rows);
    const Slice page_of = put_all(page), slot_of = put_all(slot);
    device->queue(StoreKv{inputs, stored, stored, static_cast<int>(kWidth),
                          static_cast<int>(kWidth), page_of, slot_of, 2 * kPositions});
    device->queue(
        PoolKeys{inputs, pools, put(*device, bias), page_of, slot_of, 2 * kPositions, pool});
  }

  Slice put_all(const std::vector<int32_t>& values) {
    const Slice slice = room(*device, values.size());
    device->write_ints(slice, values);
    return slice;
  }
  LayerPages pages_of(int head_dim, Access access) {
    const size_t head = page_head_stride(KvKind::kF32, head_dim) / Slice::kElementBytes;
    const Slice keys = put(*device, std::vector<float>(kPages * head, 1e30f), access);
    return {KvKind::kF32, keys, keys, head, head_dim, 0, 1};
  }
  // By its equation.
  double key(int sequence, int number, int column) const {
    double sum = 0, mean = 0;
    for (int m = 0; m < pool; ++m) {
      const size_t row = static_cast<size_t>(sequence * kPositions + number * pool + m);
      const float* of = rows.data() + row * kWidth;
      const double e = std::exp(double{of[kColumns + column]} +
                                bias[static_cast<size_t>(m * kColumns + column)]);
      sum += e;
      mean += e * of[column];
    }
    return mean / sum;
  }
  // As the pages have it.
  float found(int sequence, int number, int column) const {
    const int of_page = kPagePositions / pool, slot = number % of_page;
    const int page = kList[sequence * 2 + number / of_page];
    const int at = (slot / kLanes * kColumns + column) * kLanes + slot % kLanes;
    return device->host(
        pools.keys.buffer)[static_cast<size_t>(page) * pools.page_stride + static_cast<size_t>(at)];
  }

  static constexpr int32_t kList[kPages] = {2, 0, 3, 1};
  Numbers numbers;
  int pool;
  std::unique_ptr<Device> device;
  std::vector<float> rows, bias;
  LayerPages pools{};
};

// Tokens of both sequences in turn, some of which choose.
struct PooledChoice {
  static constexpr int kChosen = 32, kWords = 4, kHeads = 3, kColumns = PooledIndex::kColumns;

  PooledChoice(const KernelTable& table, int pool)
      : index(table, pool),
        stride(2 * kPagePositions / pool),
        at{31, kChosen + pool - 2, kChosen + pool - 1, 63, 64, 97, 99} {
    Device& device = *index.device;
    const auto tokens = static_cast<int>(at.size());
    query = index.numbers.take(tokens * kHeads * kColumns);
    weights = index.numbers.take(tokens * kHeads);
    std::vector<int32_t> offsets;
    for (int token = 0; token < tokens; ++token) offsets.push_back(token % 2 * 2);
    scores = room(device, static_cast<size_t>(tokens * stride), Access::kHost);
    const std::vector<float> ones(static_cast<size_t>(tokens * kWords),
                                  std::bit_cast<float>(0xffffffffu));
    mask = put(device, ones, Access::kHost);
    const Slice positions = index.put_all(at);
    device.queue(IndexScores{.pages = index.pools,
                             .pool = pool,
                             .query = put(device, query),
                             .weights = put(device, weights),
                             .positions = positions,
                             .page_lists = index.put_all({2, 0, 3, 1}),
                             .list_offsets = index.put_all(offsets),
                             .tokens = tokens,
                             .heads = kHeads,
                             .chosen = kChosen,
                             .scores = scores,
                             .stride = stride});
    device.queue(ChoosePositions{scores, stride, positions, tokens, kChosen, pool, mask, kWords});
    REQUIRE(device.wait().ok());
  }

  // By its equation.
  double score(size_t token, int number) const {
    double sum = 0;
    for (size_t row = token * kHeads; row < (token + 1) * kHeads; ++row) {
      double product = 0;
      for (int c = 0; c < kColumns; ++c) {
        product += query[row * kColumns + static_cast<size_t>(c)] *
                   index.key(static_cast<int>(token % 2), number, c);
      }
      sum += weights[row] * std::max(product, 0.0);
    }
    return sum;
  }
  // The scores of the token's complete pools.
  std::vector<float> scores_of(size_t token) const {
    const auto first = index.device->host(scores.buffer).begin() + static_cast<int>(token) * stride;
    return {first, first + (at[token] + 1) / index.pool};
  }
  uint32_t word(size_t token, size_t number) const {
    return std::bit_cast<uint32_t>(index.device->host(mask.buffer)[token * kWords + number]);
  }
  std::vector<size_t> positions_of(size_t token) const {
    std::vector<size_t> places;
    const auto pages = static_cast<size_t>(at[token] / kPagePositions + 1);
    for (size_t place = 0; place < pages * kPagePositions; ++place) {
      if ((word(token, place / 32) >> place % 32 & 1) != 0) places.push_back(place);
    }
    return places;
  }

  PooledIndex index;
  int stride;
  std::vector<int32_t> at;
  std::vector<float> query, weights;
  Slice scores, mask;
};

// The positions of the `count` best pools, and those after the last complete pool.
std::vector<size_t> by_definition(const std::vector<float>& scores, size_t count, int pool,
                                  int position) {
  std::vector<size_t> order(scores.size()), places;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::sort(order.begin(), order.begin() + static_cast<int>(count));
  const auto width = static_cast<size_t>(pool), end = static_cast<size_t>(position) + 1;
  for (size_t best = 0; best < count; ++best) {
    for (size_t i = 0; i < width; ++i) places.push_back(order[best] * width + i);
  }
  for (size_t i = end / width * width; i < end; ++i) places.push_back(i);
  return places;
}

}  // namespace

TEST_CASE("keys of pools are means of keys, weighted by the softmax of gates and biases") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const int pool : {1, 2, 4, 16, 64}) {
      PooledIndex index(*table, pool);
      REQUIRE(index.device->wait().ok());
      for (int sequence = 0; sequence < 2; ++sequence) {
        for (int number = 0; number < PooledIndex::kPositions / pool; ++number) {
          for (int c = 0; c < PooledIndex::kColumns; ++c) {
            CHECK(std::fabs(index.key(sequence, number, c) - index.found(sequence, number, c)) <
                  1e-5);
          }
        }
        CHECK(index.found(sequence, PooledIndex::kPositions / pool, 0) == 1e30f);  // incomplete
      }
    }
  }
}

TEST_CASE("the best pools are chosen whole, with the positions after the last complete pool") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const int pool : {2, 4, 16}) {
      PooledChoice choice(*table, pool);
      for (size_t token = 0; token < choice.at.size(); ++token) {
        const int position = choice.at[token];
        CAPTURE(position);
        if (position < PooledChoice::kChosen + pool - 1) {
          CHECK(choice.word(token, 0) == 0xffffffffu);  // as it was
          continue;
        }
        const std::vector<float> scores = choice.scores_of(token);
        for (size_t number = 0; number < scores.size(); ++number) {
          CHECK(std::fabs(choice.score(token, static_cast<int>(number)) - scores[number]) < 1e-4);
        }
        CHECK(choice.positions_of(token) ==
              by_definition(scores, static_cast<size_t>(PooledChoice::kChosen / pool), pool,
                            position));
      }
    }
  }
}

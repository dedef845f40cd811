// Attention over keys that are stored in rows, the storing of rows of several heads, and entries
// without gates, on the CPU: the bits of what they replace, and near their equations.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "device/device_values.h"
#include "kernels/isa.h"
#include "kernels/stored_kv.h"

using namespace lockstep;

namespace {

constexpr int kPages = 4, kPositions = 230;
constexpr int32_t kList[kPages] = {2, 0, 3, 1};
constexpr float kScale = 0.3f;

struct RowShape {
  KvKind kind = KvKind::kF32;
  int kv_heads = 2;
  int heads_per_kv = 3;
  int head_dim = 36;
  bool has_sinks = false;

  int heads() const { return kv_heads * heads_per_kv; }
  int width() const { return kv_heads * head_dim; }
};

Slice put_all(Device& device, const std::vector<int32_t>& values) {
  const Slice slice = room(device, values.size());
  device.write_ints(slice, values);
  return slice;
}

std::vector<float> host_values(Device& device, Slice slice, size_t count) {
  REQUIRE(device.wait().ok());
  const auto values = device.host(slice.buffer).subspan(slice.offset, count);
  return {values.begin(), values.end()};
}

bool has_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

// One sequence, stored twice: with keys in groups (pages), and with keys in rows (row_pages).
struct RowRun {
  RowRun(const KernelTable& table, const RowShape& shape, int threads = 1)
      : shape(shape),
        device(std::move(open_device({.threads = threads, .kernels = &table}).value())) {
    Numbers numbers;
    const int stride = shape.width() + 2;
    keys = numbers.take(kPositions * stride);
    values = numbers.take(kPositions * stride);
    query = numbers.take(kPositions * shape.heads() * shape.head_dim);
    sinks = numbers.take(shape.heads());
    pages = make_pages();
    row_pages = make_pages();
    std::vector<int32_t> page, slot;
    for (int position = 0; position < kPositions; ++position) {
      page.push_back(kList[position / kPagePositions]);
      slot.push_back(position % kPagePositions);
    }
    const Slice key_rows = put(*device, keys), value_rows = put(*device, values);
    const Slice page_slice = put_all(*device, page), slot_slice = put_all(*device, slot);
    device->queue(
        StoreKv{pages, key_rows, value_rows, stride, stride, page_slice, slot_slice, kPositions});
    LayerPages of_keys = row_pages;
    of_keys.values = row_pages.keys;
    device->queue(StoreRows{of_keys, key_rows, stride, page_slice, slot_slice, 0});
    device->queue(StoreRows{of_keys, key_rows, stride, page_slice, slot_slice, kPositions});
    device->queue(StoreRows{row_pages, value_rows, stride, page_slice, slot_slice, kPositions});
    queries = put(*device, query);
    sink_slice = put(*device, sinks);
    lists = put_all(*device, {kList, kList + kPages});
  }

  size_t page_elements() const {  // of keys or values
    return static_cast<size_t>(shape.kv_heads) * page_head_stride(shape.kind, shape.head_dim) /
           Slice::kElementBytes;
  }
  LayerPages make_pages() {
    const size_t all = 2 * kPages * page_elements();
    const Slice state = put(*device, std::vector<float>(all, NAN), Access::kHost);
    return {.kind = shape.kind,
            .keys = state,
            .values = {state.buffer, page_elements()},
            .page_stride = 2 * page_elements(),
            .head_dim = shape.head_dim,
            .value_dim = shape.head_dim,
            .kv_heads = shape.kv_heads};
  }

  // Tokens at all positions, so many in an operation.
  std::vector<float> attend(const LayerPages& from, bool keys_are_rows, int batch, int chosen = 0,
                            Slice mask = {}, int mask_words = 0) {
    const int row = shape.heads() * shape.head_dim;
    const size_t count = static_cast<size_t>(kPositions * row);
    const Slice output = room(*device, count, Access::kHost);
    std::vector<int32_t> positions;
    for (int position = 0; position < kPositions; ++position) positions.push_back(position);
    const Slice at = put_all(*device, positions);
    const Slice offsets = put_all(*device, std::vector<int32_t>(kPositions, 0));
    for (int first = 0; first < kPositions; first += batch) {
      const auto token = static_cast<size_t>(first);
      device->queue(
          Attention{.pages = from,
                    .query = {queries.buffer, token * static_cast<size_t>(row)},
                    .positions = {at.buffer, token},
                    .page_lists = lists,
                    .list_offsets = {offsets.buffer, token},
                    .tokens = std::min(batch, kPositions - first),
                    .heads = shape.heads(),
                    .heads_per_kv = shape.heads_per_kv,
                    .scale = kScale,
                    .has_sinks = shape.has_sinks,
                    .sinks = sink_slice,
                    .output = {output.buffer, token * static_cast<size_t>(row)},
                    .chosen = chosen,
                    .mask = {mask.buffer, mask.offset + token * static_cast<size_t>(mask_words)},
                    .mask_words = mask_words,
                    .keys_are_rows = keys_are_rows});
    }
    return host_values(*device, output, count);
  }

  // The output of a token's head over some positions, from the stored numbers.
  std::vector<double> by_definition(int position, int head,
                                    const std::vector<int>& attended) const {
    const int kv_head = head / shape.heads_per_kv, stride = shape.width() + 2;
    const auto stored = [&](const std::vector<float>& rows, int at) {
      const auto first = rows.begin() + at * stride + kv_head * shape.head_dim;
      return rounded_rows(shape.kind, {first, first + shape.head_dim}, shape.head_dim);
    };
    const float* of = query.data() + (position * shape.heads() + head) * shape.head_dim;
    double sum = shape.has_sinks ? std::exp(double{sinks[static_cast<size_t>(head)]}) : 0;
    std::vector<double> mean(static_cast<size_t>(shape.head_dim), 0.0);
    for (const int at : attended) {
      const std::vector<float> key = stored(keys, at), value = stored(values, at);
      double score = 0;
      for (size_t i = 0; i < key.size(); ++i) score += double{of[i]} * key[i];
      const double e = std::exp(double{kScale} * score);
      sum += e;
      for (size_t i = 0; i < key.size(); ++i) mean[i] += e * value[i];
    }
    for (double& x : mean) x /= sum;
    return mean;
  }

  RowShape shape;
  std::unique_ptr<Device> device;
  std::vector<float> keys, values, query, sinks;
  LayerPages pages, row_pages;
  Slice queries, sink_slice, lists;
};

constexpr RowShape kShapes[] = {
    {.kind = KvKind::kF32, .kv_heads = 1, .heads_per_kv = 18, .head_dim = 36, .has_sinks = true},
    {.kind = KvKind::kBF16, .kv_heads = 3, .heads_per_kv = 1, .head_dim = 20},
    {.kind = KvKind::kF16, .kv_heads = 2, .heads_per_kv = 4, .head_dim = 64, .has_sinks = true},
    {.kind = KvKind::kQ8, .kv_heads = 2, .heads_per_kv = 3, .head_dim = 76}};

}  // namespace

TEST_CASE("values stored as rows of several heads have the bytes of stored values") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const RowShape& shape : kShapes) {
      for (const int threads : {1, 3}) {
        RowRun run(*table, shape, threads);
        const size_t all = 2 * kPages * run.page_elements();
        const auto groups = host_values(*run.device, run.pages.keys, all);
        const auto rows = host_values(*run.device, run.row_pages.keys, all);
        for (size_t page = 0; page < kPages; ++page) {
          const size_t at = page * 2 * run.page_elements() + run.page_elements();
          const auto of_page = [&](const std::vector<float>& from) {
            const auto first = from.begin() + static_cast<std::ptrdiff_t>(at);
            return std::vector<float>(first,
                                      first + static_cast<std::ptrdiff_t>(run.page_elements()));
          };
          CHECK(has_same_bits(of_page(groups), of_page(rows)));
        }
      }
    }
  }
}

TEST_CASE("attention over keys in rows has the bits of attention, for any threads and batches") {
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const RowShape& shape : kShapes) {
      CAPTURE(static_cast<int>(shape.kind));
      for (const int threads : {1, 3}) {
        RowRun run(*table, shape, threads);
        const std::vector<float> expected = run.attend(run.pages, false, kPositions);
        for (const int batch : {1, 7, kPositions}) {
          CAPTURE(batch);
          CHECK(has_same_bits(expected, run.attend(run.row_pages, true, batch)));
        }
      }
    }
  }
}

TEST_CASE("attention over chosen keys in rows is near its equation") {
  constexpr int kChosen = 40, kMaskWords = 2 * kPages;
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const RowShape& shape : kShapes) {
      CAPTURE(static_cast<int>(shape.kind));
      RowRun run(*table, shape);
      const auto is_chosen = [](int token, int position) {
        return position <= token && (position == token || (position * 7 + token) % 5 == 0);
      };
      std::vector<float> masks;
      for (int token = 0; token < kPositions; ++token) {
        uint32_t words[kMaskWords] = {};
        for (int position = 0; token >= kChosen && position <= token; ++position) {
          if (is_chosen(token, position)) words[position / 32] |= 1u << position % 32;
        }
        for (const uint32_t word : words) masks.push_back(std::bit_cast<float>(word));
      }
      const Slice mask = put(*run.device, masks);
      const auto found = run.attend(run.row_pages, true, kPositions, kChosen, mask, kMaskWords);
      CHECK(has_same_bits(found, run.attend(run.row_pages, true, 9, kChosen, mask, kMaskWords)));
      double worst = 0;
      for (const int token : {0, kChosen - 1, kChosen, 64, 127, kPositions - 1}) {
        std::vector<int> attended;
        for (int position = 0; position <= token; ++position) {
          if (token < kChosen || is_chosen(token, position)) attended.push_back(position);
        }
        for (int head = 0; head < shape.heads(); ++head) {
          const auto wanted = run.by_definition(token, head, attended);
          const auto at = static_cast<size_t>((token * shape.heads() + head) * shape.head_dim);
          for (size_t i = 0; i < wanted.size(); ++i) {
            worst = std::max(worst, std::fabs(wanted[i] - double{found[at + i]}));
          }
        }
      }
      CHECK(worst < 2e-5);
    }
  }
}

TEST_CASE("entries without gates are means, for any threads and batches") {
  constexpr int kColumns = 150;
  for (const KvKind kind : kKvKinds) {
    CAPTURE(static_cast<int>(kind));
    for (const int pool : {1, 4, 64, 100}) {
      CAPTURE(pool);
      Numbers numbers;
      const std::vector<float> rows = numbers.take(kPositions * kColumns);
      const std::vector<float> stored = rounded_rows(kind, rows, kColumns);
      std::vector<float> wanted;
      std::vector<int32_t> page, slot, last;
      for (int position = 0; position < kPositions; ++position) {
        page.push_back(kList[position / kPagePositions]);
        slot.push_back(position % kPagePositions);
        if ((position + 1) % pool != 0) continue;
        last.push_back(position);
        for (int c = 0; c < kColumns; ++c) {
          float sum = stored[static_cast<size_t>((position + 1 - pool) * kColumns + c)];
          for (int at = position + 2 - pool; at <= position; ++at) {
            sum += stored[static_cast<size_t>(at * kColumns + c)];
          }
          wanted.push_back(sum / static_cast<float>(pool));
        }
      }
      for (const KernelTable* table : available_kernels()) {
        CAPTURE(std::string(table->name));
        for (const int threads : {1, 3}) {
          auto device = std::move(open_device({.threads = threads, .kernels = table}).value());
          const size_t stride = page_head_stride(kind, kColumns) / Slice::kElementBytes;
          const LayerPages pages{
              kind,   {},       put(*device, std::vector<float>(kPages * stride, NAN)),
              stride, kColumns, kColumns,
              1};
          device->queue(StoreRows{pages, put(*device, rows), kColumns, put_all(*device, page),
                                  put_all(*device, slot), kPositions});
          Compress op{.inputs = pages,
                      .last = put_all(*device, last),
                      .page_lists = put_all(*device, {kList, kList + kPages}),
                      .list_offsets = put_all(*device, std::vector<int32_t>(last.size(), 0)),
                      .entries = static_cast<int>(last.size()),
                      .pool = pool,
                      .columns = kColumns,
                      .output = room(*device, wanted.size(), Access::kHost),
                      .has_gates = false};
          device->queue(op);
          CHECK(has_same_bits(host_values(*device, op.output, wanted.size()), wanted));
        }
      }
    }
  }
}

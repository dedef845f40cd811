// The operations of compressed attention on the CPU: near their equations, and with the same bits
// for any number of threads and any batches.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "device/device_values.h"
#include "kernels/isa.h"

using namespace lockstep;

namespace {

struct CompressedShape {
  KvKind kind = KvKind::kF32;
  int pool = 4;  // 0: no entries
  bool overlaps = true;
  int window = 20;
  int chosen = 0;
  bool has_sinks = true;
};

// Positions of two sequences, whose pages and tokens alternate. Rows are stored as they come; then
// all entries are made and stored; then all tokens attend.
struct CompressedRun {
  static constexpr int kSequences = 2, kPositions = 150, kPages = 6, kHeads = 18, kColumns = 40;
  static constexpr int kRowStride = kColumns + 3, kTokens = kSequences * kPositions;
  static constexpr int kMaskWords = 6;
  static constexpr int32_t kLists[kPages] = {4, 0, 3, 1, 5, 2};

  CompressedRun(const KernelTable& table, const CompressedShape& shape, int threads, int batch)
      : shape(shape),
        batch(batch),
        device(std::move(open_device({.threads = threads, .kernels = &table}).value())) {
    Numbers numbers;
    rows = numbers.take(kTokens * kRowStride);
    inputs = numbers.take(kTokens * 2 * width());
    bias = numbers.take(shape.pool * width());
    query = numbers.take(kTokens * kHeads * kColumns);
    sinks = numbers.take(kHeads);
    row_pages = pages_of(shape.kind, kColumns, kPagePositions);
    input_pages = pages_of(shape.kind, 2 * width(), kPagePositions);
    entry_pages = pages_of(KvKind::kF32, kColumns, slots());
    lists = put_all({kLists, kLists + kPages});
    store_positions();
    compress();
    attend();
    REQUIRE(device->wait().ok());
    const auto made = device->host(entry_rows.buffer), attended = device->host(output.buffer);
    entries.assign(made.begin(), made.begin() + kSequences * of_sequence() * kColumns);
    outputs.assign(attended.begin(), attended.begin() + kTokens * kHeads * kColumns);
  }

  int width() const { return kColumns * (shape.overlaps ? 2 : 1); }
  int slots() const { return kPagePositions / std::clamp(shape.pool, 1, kPagePositions); }
  // Entries of a sequence, or of its beginning.
  int of_sequence(int count = kPositions) const { return shape.pool > 0 ? count / shape.pool : 0; }
  static int page_of(int sequence, int position) {
    return kLists[sequence * (kPages / kSequences) + position / kPagePositions];
  }

  Slice put_all(const std::vector<int32_t>& values) {
    const Slice slice = room(*device, values.size());
    device->write_ints(slice, values);
    return slice;
  }
  LayerPages pages_of(KvKind kind, int columns, int page_rows) {
    const size_t stride = page_head_stride(kind, columns) / Slice::kElementBytes *
                          static_cast<size_t>(page_rows) / kPagePositions;
    const Slice values = put(*device, std::vector<float>(kPages * stride, NAN));
    return {kind, {}, values, stride, columns, columns, 1};
  }
  // Calls queue(first, count) for each batch of so many items.
  template <class Queue>
  void in_batches(int count, Queue queue) const {
    for (int first = 0; first < count; first += batch) queue(first, std::min(batch, count - first));
  }
  static Slice from(Slice slice, int first, int stride) {
    return {slice.buffer, slice.offset + static_cast<size_t>(first) * static_cast<size_t>(stride)};
  }
  void store(const LayerPages& pages, Slice from_rows, int stride, const std::vector<int32_t>& page,
             const std::vector<int32_t>& slot) {
    const Slice page_slice = put_all(page), slot_slice = put_all(slot);
    in_batches(static_cast<int>(page.size()), [&](int first, int count) {
      device->queue(StoreRows{pages, from(from_rows, first, stride), stride,
                              from(page_slice, first, 1), from(slot_slice, first, 1), count});
    });
  }

  void store_positions() {
    std::vector<int32_t> page, slot, offsets;
    for (int token = 0; token < kTokens; ++token) {
      const int position = token / kSequences;
      page.push_back(page_of(token % kSequences, position));
      slot.push_back(position % kPagePositions);
      positions.push_back(position);
      offsets.push_back(token % kSequences * (kPages / kSequences));
    }
    list_offsets = put_all(offsets);
    store(row_pages, put(*device, rows), kRowStride, page, slot);
    store(input_pages, put(*device, inputs), 2 * width(), page, slot);
  }
  void compress() {
    std::vector<int32_t> last, page, slot, offsets;
    for (int sequence = 0; sequence < kSequences; ++sequence) {
      for (int entry = 0; entry < of_sequence(); ++entry) {
        last.push_back((entry + 1) * shape.pool - 1);
        page.push_back(page_of(sequence, last.back()));
        slot.push_back(entry % slots());
        offsets.push_back(sequence * (kPages / kSequences));
      }
    }
    const Slice last_slice = put_all(last), offset_slice = put_all(offsets);
    const Slice bias_slice = put(*device, bias);
    entry_rows = room(*device, std::max<size_t>(1, last.size() * kColumns), Access::kHost);
    in_batches(static_cast<int>(last.size()), [&](int first, int count) {
      device->queue(Compress{.inputs = input_pages,
                             .bias = bias_slice,
                             .last = from(last_slice, first, 1),
                             .page_lists = lists,
                             .list_offsets = from(offset_slice, first, 1),
                             .entries = count,
                             .pool = shape.pool,
                             .overlaps = shape.overlaps,
                             .columns = kColumns,
                             .output = from(entry_rows, first, kColumns)});
    });
    store(entry_pages, entry_rows, kColumns, page, slot);
  }
  bool is_chosen(int token, int entry) const {
    const int count = of_sequence(token / kSequences + 1);
    if (shape.chosen == 0 || count <= shape.chosen) return true;
    return (entry + token) % count < shape.chosen;
  }
  // Tokens that do not choose have no entry in their masks, which are not used.
  Slice masks() {
    std::vector<float> mask;
    for (int token = 0; token < kTokens; ++token) {
      uint32_t words[kMaskWords] = {};
      const int count = of_sequence(token / kSequences + 1);
      for (int entry = 0; count > shape.chosen && entry < count; ++entry) {
        if (is_chosen(token, entry)) words[entry / 32] |= 1u << entry % 32;
      }
      for (const uint32_t word : words) mask.push_back(std::bit_cast<float>(word));
    }
    return put(*device, mask);
  }
  void attend() {
    const Slice queries = put(*device, query), sink_slice = put(*device, sinks);
    const Slice places = put_all(positions);
    const Slice mask = shape.chosen > 0 ? masks() : Slice{};
    constexpr int kRow = kHeads * kColumns;
    output = room(*device, kTokens * kRow, Access::kHost);
    in_batches(kTokens, [&](int first, int count) {
      device->queue(CompressedAttention{.rows = row_pages,
                                        .entries = entry_pages,
                                        .pool = shape.pool,
                                        .query = from(queries, first, kRow),
                                        .positions = from(places, first, 1),
                                        .page_lists = lists,
                                        .list_offsets = from(list_offsets, first, 1),
                                        .entry_offsets = from(list_offsets, first, 1),
                                        .tokens = count,
                                        .heads = kHeads,
                                        .window = shape.window,
                                        .scale = 0.3f,
                                        .has_sinks = shape.has_sinks,
                                        .sinks = sink_slice,
                                        .output = from(output, first, kRow),
                                        .chosen = shape.chosen,
                                        .mask = from(mask, first, kMaskWords),
                                        .mask_words = kMaskWords});
    });
  }

  const float* input(int sequence, int position) const {
    return inputs.data() + (position * kSequences + sequence) * 2 * width();
  }
  // By its equation, with float32 inputs.
  double entry(int sequence, int number, int column) const {
    double sum = 0, mean = 0;
    const int own = number * shape.pool;
    for (int position = std::max(0, shape.overlaps ? own - shape.pool : own);
         position < own + shape.pool; ++position) {
      const int at = column + (shape.overlaps && position >= own ? kColumns : 0);
      const float* of = input(sequence, position);
      const double e =
          std::exp(double{of[width() + at]} +
                   double{bias[static_cast<size_t>(position % shape.pool * width() + at)]});
      sum += e;
      mean += e * of[at];
    }
    return mean / sum;
  }
  const float* made_entry(int sequence, int number) const {
    return entries.data() + (sequence * of_sequence() + number) * kColumns;
  }
  // The keys of a token.
  std::vector<const float*> keys_of(int token) const {
    std::vector<const float*> keys;
    const int position = token / kSequences, sequence = token % kSequences;
    for (int number = 0; number < of_sequence(position + 1); ++number) {
      if (is_chosen(token, number)) keys.push_back(made_entry(sequence, number));
    }
    for (int at = std::max(0, position + 1 - shape.window); at <= position; ++at) {
      keys.push_back(rows.data() + (at * kSequences + sequence) * kRowStride);
    }
    return keys;
  }
  void check_attention(int token, int head) const {
    const float* of = query.data() + (token * kHeads + head) * kColumns;
    double sum = shape.has_sinks ? std::exp(double{sinks[static_cast<size_t>(head)]}) : 0;
    std::vector<double> wanted(kColumns, 0.0);
    for (const float* key : keys_of(token)) {
      double score = 0;
      for (int i = 0; i < kColumns; ++i) score += double{of[i]} * key[i];
      const double e = std::exp(double{0.3f} * score);
      sum += e;
      for (size_t i = 0; i < kColumns; ++i) wanted[i] += e * key[i];
    }
    double worst = 0;
    const float* found = outputs.data() + (token * kHeads + head) * kColumns;
    for (size_t i = 0; i < kColumns; ++i) {
      worst = std::max(worst, std::fabs(wanted[i] / sum - double{found[i]}));
    }
    CHECK(worst < 1e-4);
  }

  CompressedShape shape;
  int batch;
  std::unique_ptr<Device> device;
  std::vector<float> rows, inputs, bias, query, sinks;
  std::vector<int32_t> positions;
  LayerPages row_pages, input_pages, entry_pages;
  Slice lists, list_offsets, entry_rows, output;
  std::vector<float> entries, outputs;
};

bool has_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

}  // namespace

TEST_CASE("entries and compressed attention are near their equations") {
  const CompressedShape shapes[] = {{.pool = 4, .window = 20},
                                    {.pool = 2, .overlaps = false, .window = 70, .chosen = 16},
                                    {.pool = 4, .window = 1, .chosen = 7, .has_sinks = false},
                                    {.pool = 64, .window = 500},
                                    {.pool = 128, .overlaps = false, .window = 33},
                                    {.pool = 0, .window = 80}};
  for (const KernelTable* table : available_kernels()) {
    CAPTURE(std::string(table->name));
    for (const CompressedShape& shape : shapes) {
      CAPTURE(shape.pool);
      const CompressedRun run(*table, shape, 1, 1000);
      for (int sequence = 0; sequence < CompressedRun::kSequences; ++sequence) {
        for (int number = 0; number < run.of_sequence(); ++number) {
          for (int c = 0; c < CompressedRun::kColumns; ++c) {
            CHECK(std::fabs(run.entry(sequence, number, c) -
                            double{run.made_entry(sequence, number)[c]}) < 1e-5);
          }
        }
      }
      for (int token = 0; token < CompressedRun::kTokens; ++token) {
        CAPTURE(token);
        for (const int head : {0, 7, 17}) run.check_attention(token, head);
      }
    }
  }
}

TEST_CASE("entries and compressed attention have the same bits for any threads and batches") {
  const CompressedShape shapes[] = {
      {.kind = KvKind::kF32, .pool = 4, .chosen = 9},
      {.kind = KvKind::kBF16, .pool = 2, .overlaps = false, .window = 100},
      {.kind = KvKind::kF16, .pool = 64, .window = 64, .has_sinks = false},
      {.kind = KvKind::kQ8, .pool = 4, .window = 9}};
  for (const CompressedShape& shape : shapes) {
    CAPTURE(static_cast<int>(shape.kind));
    const CompressedRun first(*available_kernels().front(), shape, 1, 1000);
    const bool is_finite = std::all_of(first.outputs.begin(), first.outputs.end(),
                                       [](float x) { return std::isfinite(x); });
    CHECK(is_finite);
    for (const int threads : {1, 2, 3}) {
      for (const int batch : {1, 7, 64, 1000}) {
        CAPTURE(threads);
        CAPTURE(batch);
        const CompressedRun run(*available_kernels().back(), shape, threads, batch);
        CHECK(has_same_bits(first.entries, run.entries));
        CHECK(has_same_bits(first.outputs, run.outputs));
      }
    }
  }
}

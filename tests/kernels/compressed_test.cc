// Compressed attention and its entries, of every instruction set, bit for bit as the definition has
// them, and near their equations in double precision.
#include <doctest/doctest.h>

#include <cmath>

#include "kernels/definition.h"
#include "kernels/stored_kv.h"
#include "kernels/test_data.h"

namespace lockstep {
namespace {

constexpr float kScale = 0.25f;
constexpr int kHeadsOfCase = 20;

struct CompressedShape {
  int pool;  // 0: no entries
  int head_dim;
  int positions;

  int entries() const { return pool > 0 ? positions / pool : 0; }
  int slots() const { return pool < kPagePositions ? kPagePositions / std::max(1, pool) : 1; }
  int page_count() const { return (positions + kPagePositions - 1) / kPagePositions; }
};

// Pages that are not in order: all of them backwards, in pairs.
std::vector<int32_t> mixed_pages(int count) {
  std::vector<int32_t> list;
  for (int i = 0; i < count; ++i) list.push_back(i + 1 < count || i % 2 == 1 ? i ^ 1 : i);
  std::reverse(list.begin(), list.end());
  return list;
}

// Rows that are written without keys; garbage, which is NaN, fills all other slots.
struct StoredRows {
  StoredRows(const KernelTable& table, KvKind kind, int columns, int page_rows, int pages)
      : table(table) {
    const size_t stride = page_head_stride(kind, columns) / kPagePositions;
    memory.assign(static_cast<size_t>(pages) * stride * static_cast<size_t>(page_rows),
                  std::byte{0xff});
    args = {kind,    nullptr, memory.data(), stride * static_cast<size_t>(page_rows), columns,
            columns, 1};
  }

  void store(const std::vector<float>& rows, const std::vector<int32_t>& page,
             const std::vector<int32_t>& slot) {
    const auto stride = static_cast<size_t>(args.head_dim);
    values = rounded_rows(args.kind, rows, args.head_dim);
    table.store_kv({args, nullptr, rows.data(), 0, stride, page.data(), slot.data(), 0,
                    static_cast<int32_t>(page.size())});
  }
  const float* row(int number) const {
    return values.data() + static_cast<size_t>(number) * static_cast<size_t>(args.head_dim);
  }

  const KernelTable& table;
  PageArgs args{};
  std::vector<std::byte> memory;
  std::vector<float> values;  // as they are stored
};

// The rows of all positions.
StoredRows stored_positions(const KernelTable& table, KvKind kind, int columns,
                            const std::vector<float>& rows, const std::vector<int32_t>& list) {
  const auto positions = static_cast<int>(rows.size()) / columns;
  StoredRows stored(table, kind, columns, kPagePositions, static_cast<int>(list.size()));
  std::vector<int32_t> page, slot;
  for (int position = 0; position < positions; ++position) {
    page.push_back(list[static_cast<size_t>(position / kPagePositions)]);
    slot.push_back(position % kPagePositions);
  }
  stored.store(rows, page, slot);
  return stored;
}

// Where the contract of CompressedAttention has them: a page has as many slots as it needs.
StoredRows stored_entries(const KernelTable& table, const CompressedShape& shape,
                          const std::vector<float>& rows, const std::vector<int32_t>& list) {
  StoredRows stored(table, KvKind::kF32, shape.head_dim, shape.slots(),
                    static_cast<int>(list.size()));
  std::vector<int32_t> page, slot;
  for (int entry = 0; entry < shape.entries(); ++entry) {
    const int last = (entry + 1) * shape.pool - 1;
    page.push_back(list[static_cast<size_t>(last / kPagePositions)]);
    slot.push_back(entry % shape.slots());
  }
  stored.store(rows, page, slot);
  return stored;
}

struct CompressedCase {
  int position;
  int window;
  int heads;
  bool has_sinks;
  const std::vector<uint32_t>* mask;  // null: no choice
};

// A sequence with its numbers, the same for all tables.
struct CompressedSample {
  CompressedSample(KvKind kind, const CompressedShape& shape)
      : kind(kind),
        shape(shape),
        list(mixed_pages(shape.page_count())),
        entry_list(list.rbegin(), list.rend()) {
    SampleRandom random(61);
    const auto columns = static_cast<size_t>(shape.head_dim);
    rows = random.units(static_cast<size_t>(shape.positions) * columns);
    entries = random.units(static_cast<size_t>(shape.entries()) * columns);
    query = random.units(kHeadsOfCase * columns);
    for (float& q : query) q *= 3.0f;
    sinks = random.units(kHeadsOfCase);
    for (float& sink : sinks) sink *= 4.0f;
  }

  KvKind kind;
  CompressedShape shape;
  std::vector<int32_t> list, entry_list;
  std::vector<float> rows, entries, query, sinks;
};

// The same with the pages of one table.
struct CompressedPages {
  CompressedPages(const KernelTable& table, const CompressedSample& of)
      : of(of),
        rows(stored_positions(table, of.kind, of.shape.head_dim, of.rows, of.list)),
        entries(stored_entries(table, of.shape, of.entries, of.entry_list)) {}

  std::vector<float> attend(const CompressedCase& c) const {
    const auto count = static_cast<size_t>(c.heads * of.shape.head_dim);
    std::vector<float> output(count + 8, kUntouched);
    rows.table.compressed_attention({.rows = rows.args,
                                     .entries = of.shape.pool > 0 ? entries.args : PageArgs{},
                                     .pool = of.shape.pool,
                                     .page_list = of.list.data(),
                                     .entry_list = of.entry_list.data(),
                                     .position = c.position,
                                     .window = c.window,
                                     .query = of.query.data(),
                                     .heads = c.heads,
                                     .scale = kScale,
                                     .sinks = c.has_sinks ? of.sinks.data() : nullptr,
                                     .chosen = c.mask != nullptr ? c.mask->data() : nullptr,
                                     .output = output.data()});
    for (size_t i = count; i < output.size(); ++i) CHECK(output[i] == kUntouched);
    output.resize(count);
    return output;
  }
  // The rows that take part, in blocks of entries and then in pages.
  std::vector<std::vector<definition::AttendedRow>> pages_of(const CompressedCase& c) const {
    std::vector<std::vector<definition::AttendedRow>> pages;
    const auto add = [&](const float* row, int number, bool begins) {
      if (begins) pages.emplace_back();
      pages.back().push_back({row, number % kLanes});
    };
    int before = -1;
    const int count = of.shape.pool > 0 ? (c.position + 1) / of.shape.pool : 0;
    for (int entry = 0; entry < count; ++entry) {
      const auto word = static_cast<size_t>(entry / 32);
      if (c.mask != nullptr && ((*c.mask)[word] >> entry % 32 & 1) == 0) continue;
      add(entries.row(entry), entry, before != entry / 64);
      before = entry / 64;
    }
    const int first = std::max(0, c.position + 1 - c.window);
    for (int position = first; position <= c.position; ++position) {
      add(rows.row(position), position, position == first || position % kPagePositions == 0);
    }
    return pages;
  }

  const CompressedSample& of;
  StoredRows rows, entries;
};

std::vector<float> query_of(const CompressedSample& sample, int head) {
  const auto begin = sample.query.begin() + head * sample.shape.head_dim;
  return {begin, begin + sample.shape.head_dim};
}

std::vector<float> attention_by_definition(const CompressedPages& pages, const CompressedCase& c) {
  std::vector<float> all;
  const auto attended = pages.pages_of(c);
  for (int head = 0; head < c.heads; ++head) {
    const float* sink = c.has_sinks ? &pages.of.sinks[static_cast<size_t>(head)] : nullptr;
    const auto output = definition::attention(query_of(pages.of, head), attended, kScale, sink);
    all.insert(all.end(), output.begin(), output.end());
  }
  return all;
}

// In double precision, one head.
void check_compressed(const CompressedPages& pages, const CompressedCase& c, int head,
                      const float* output) {
  std::vector<std::pair<double, const float*>> rows;
  const std::vector<float> query = query_of(pages.of, head);
  const double sink = c.has_sinks ? pages.of.sinks[static_cast<size_t>(head)] : -INFINITY;
  double most = sink;
  for (const auto& page : pages.pages_of(c)) {
    for (const definition::AttendedRow& of : page) {
      double score = 0;
      for (size_t i = 0; i < query.size(); ++i) score += double{query[i]} * of.row[i];
      rows.emplace_back(kScale * score, of.row);
      most = std::max(most, kScale * score);
    }
  }
  double sum = std::exp(sink - most), worst = 0;
  for (auto& [score, row] : rows) sum += score = std::exp(score - most);
  for (size_t i = 0; i < query.size(); ++i) {
    double value = 0;
    for (const auto& [e, row] : rows) value += e / sum * row[i];
    worst = std::max(worst, std::fabs(value - double{output[i]}));
  }
  CHECK(worst < 1e-5);
}

// Some entries of each block; none of the first block but perhaps the last one; none at all.
std::vector<std::vector<uint32_t>> masks_of(int entries) {
  const auto words = static_cast<size_t>((entries + 63) / 64 * 2);
  SampleRandom random(67);
  std::vector<std::vector<uint32_t>> masks(3, std::vector<uint32_t>(words, 0));
  for (int entry = 0; entry < entries; ++entry) {
    const auto word = static_cast<size_t>(entry / 32);
    const uint32_t bit = 1u << entry % 32;
    if (random.below(3) == 0) masks[0][word] |= bit;
    if (entry >= 64 || entry == entries - 1) masks[1][word] |= bit;
  }
  return masks;
}

// Some positions with every window, each with all entries and with one of the choices.
template <class Check>
void for_each_case(const CompressedShape& shape, Check check) {
  const auto masks = masks_of(shape.entries());
  const int pool = std::max(1, shape.pool), last = shape.positions - 1;
  int number = 0;
  for (const int position : {0, pool - 2, pool - 1, pool, 2 * pool - 1, 63, 64, 100, last}) {
    if (position < 0 || position > last) continue;
    for (const int window : {1, 5, 64, 100, 700}) {
      ++number;
      const int heads[] = {1, 3, 4, 16, 17, kHeadsOfCase};
      CompressedCase c{position, window, heads[number % 6], number % 2 == 0, nullptr};
      check(c);
      if (shape.pool == 0) continue;
      c.mask = &masks[static_cast<size_t>(number % 3)];
      check(c);
    }
  }
}

constexpr CompressedShape kCompressedShapes[] = {{0, 24, 200},   {0, 80, 150},   {2, 48, 300},
                                                 {2, 17, 131},   {4, 80, 530},   {4, 24, 64},
                                                 {64, 24, 4180}, {128, 48, 8330}};

// One entry: its own columns and those of its members in the pool before.
struct EntryCase {
  int columns;
  int pool;
  bool overlaps;
  int last;
  bool has_gates = true;

  int width() const { return columns * (overlaps ? 2 : 1); }
  int row() const { return width() * (has_gates ? 2 : 1); }
};

std::vector<float> entry_by_definition(const EntryCase& c, const StoredRows& rows,
                                       const std::vector<float>& bias) {
  std::vector<float> entry;
  for (int column = 0; column < c.columns; ++column) {
    std::vector<float> values, gates;
    const auto add = [&](int pool_begin, int of) {
      for (int m = 0; m < c.pool; ++m) {
        const float* row = rows.row(pool_begin + m);
        values.push_back(row[of]);
        if (!c.has_gates) continue;
        gates.push_back(row[c.width() + of] + bias[static_cast<size_t>(m * c.width() + of)]);
      }
    };
    const int own = c.last + 1 - c.pool;
    if (c.overlaps && own > 0) add(own - c.pool, column);
    add(own, column + (c.overlaps ? c.columns : 0));
    entry.push_back(c.has_gates ? definition::pooled_key(values, gates)
                                : definition::plain_mean(values));
    if (!c.has_gates) gates.assign(values.size(), 0.0f);
    double sum = 0, mean = 0;
    for (size_t m = 0; m < values.size(); ++m) {
      sum += std::exp(double{gates[m]});
      mean += std::exp(double{gates[m]}) * values[m];
    }
    CHECK(std::fabs(mean / sum - double{entry.back()}) < 1e-5);
  }
  return entry;
}

void check_entries(const KernelTable& table, KvKind kind, EntryCase c) {
  SampleRandom random(71);
  const int count = std::max(3, 130 / c.pool);
  const int positions = count * c.pool, row = c.row();
  const std::vector<int32_t> list = mixed_pages((positions + kPagePositions - 1) / kPagePositions);
  const std::vector<float> stored = random.units(static_cast<size_t>(positions * row));
  const StoredRows rows = stored_positions(table, kind, row, stored, list);
  const std::vector<float> bias = random.units(static_cast<size_t>(c.pool * c.width()));
  for (const int entry : {0, 1, count - 1}) {
    c.last = (entry + 1) * c.pool - 1;
    const std::vector<float> whole = entry_by_definition(c, rows, bias);
    for (const auto& [begin, end] : {std::pair{0, c.columns}, {16, std::min(c.columns, 40)}}) {
      if (begin >= end) continue;
      std::vector<float> found(whole.size() + 8, kUntouched), expected = found;
      std::copy(whole.begin() + begin, whole.begin() + end, expected.begin() + begin);
      table.compress({.inputs = rows.args,
                      .bias = c.has_gates ? bias.data() : nullptr,
                      .page_list = list.data(),
                      .last = c.last,
                      .pool = c.pool,
                      .overlaps = c.overlaps,
                      .columns = c.columns,
                      .column_begin = begin,
                      .column_end = end,
                      .output = found.data()});
      CHECK(first_difference(found, expected) == -1);
    }
  }
}

}  // namespace

TEST_CASE("compressed attention equals its definition bit for bit, and is near its equation") {
  for (const KvKind kind : kKvKinds) {
    for (const CompressedShape& shape : kCompressedShapes) {
      CAPTURE(shape.pool);
      const CompressedSample sample(kind, shape);
      std::vector<CompressedPages> pages;
      for (const KernelTable* table : available_kernels()) pages.emplace_back(*table, sample);
      for_each_case(shape, [&](const CompressedCase& c) {
        CAPTURE(c.position);
        CAPTURE(c.window);
        CAPTURE(c.heads);
        const std::vector<float> expected = attention_by_definition(pages[0], c);
        for (int head = 0; head < c.heads; head += 3) {
          check_compressed(pages[0], c, head, expected.data() + head * shape.head_dim);
        }
        for (const CompressedPages& each : pages) {
          CAPTURE(std::string(each.rows.table.name));
          CHECK(first_difference(each.attend(c), expected) == -1);
        }
      });
    }
  }
}

TEST_CASE("compressed attention without entries has the bits of attention with a window") {
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    for (const int columns : {24, 48, 80}) {
      const CompressedSample sample(kind, {0, columns, 300});
      CompressedPages pages(*table, sample);
      std::vector<std::byte> keys(pages.rows.memory.size(), std::byte{0xff});
      PageArgs both = pages.rows.args;
      both.keys = keys.data();
      const auto width = static_cast<size_t>(columns);
      for (int32_t position = 0; position < 300; ++position) {
        const float* row = sample.rows.data() + static_cast<size_t>(position) * width;
        const int32_t slot = position % kPagePositions;
        table->store_kv({both, row, row, width, width,
                         &sample.list[static_cast<size_t>(position / kPagePositions)], &slot, 0,
                         1});
      }
      for_each_case(sample.shape, [&](const CompressedCase& c) {
        std::vector<float> output(static_cast<size_t>(c.heads) * width);
        table->attention({both, 0, sample.list.data(), c.position, c.window, sample.query.data(),
                          c.heads, kScale, c.has_sinks ? sample.sinks.data() : nullptr,
                          output.data()});
        CHECK(first_difference(pages.attend(c), output) == -1);
      });
    }
  }
}

TEST_CASE("entries equal their definition bit for bit, whatever the columns and their scales") {
  for (const auto& [table, kind] : tables_and_kinds()) {
    CAPTURE(std::string(table->name));
    CAPTURE(static_cast<int>(kind));
    for (const int pool : {1, 2, 4, 64, 128}) {
      for (const int columns : {1, 16, 24, 41, 75, 130}) {
        for (const bool overlaps : {false, true}) {
          CAPTURE(pool);
          CAPTURE(columns);
          CAPTURE(overlaps);
          check_entries(*table, kind, {columns, pool, overlaps, 0});
        }
        check_entries(*table, kind, {columns, pool, false, 0, false});
      }
    }
  }
}

}  // namespace lockstep

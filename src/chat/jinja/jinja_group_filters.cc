// Filters that put the elements of a sequence into groups, and the order of elements.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "chat/jinja/jinja_filters.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

using Values = std::vector<Value>;

constexpr int64_t kGroupsMax = 10'000;  // slices, and elements that fill a batch

Result<int64_t> group_count(const Arguments& arguments, std::string_view keyword) {
  (void)TRY(arguments.need(0, keyword));
  const int64_t count = TRY(arguments.integer(0, keyword, 0));
  if (count > kGroupsMax) {
    return jinja_error(fmt::format("{} is {}, at most {} is possible", keyword, count, kGroupsMax));
  }
  return count;
}

// The argument that fills incomplete groups; null: none does.
const Value* filler(const Arguments& arguments) {
  const Value* value = arguments.find(1, "fill_with");
  return value && !value->is(Kind::kNone) ? value : nullptr;
}

Result<Value> grouping_key(Heap& heap, const Value& item, const Arguments& arguments,
                           const Value& attribute) {
  const Value key = TRY(attribute_of(heap, item, attribute));
  const Value* otherwise = arguments.find(1, "default");
  const bool replaces = key.is(Kind::kUndefined) && otherwise && !otherwise->is(Kind::kNone);
  return replaces ? *otherwise : key;
}

}  // namespace

Result<Value> attribute_of(Heap& heap, Value item, const Value& attribute) {
  if (!attribute.is(Kind::kText)) return jinja_subscript(heap, item, attribute);
  std::string_view path = attribute.as_string();
  for (;;) {
    const std::string_view part = path.substr(0, path.find('.'));
    int64_t index = 0;
    const char* end = part.data() + part.size();
    const auto parsed = std::from_chars(part.data(), end, index);
    const bool is_index = parsed.ec == std::errc() && parsed.ptr == end && part[0] != '-';
    item = TRY(jinja_subscript(heap, item, is_index ? Value::of(index) : heap.text(part)));
    if (part.size() == path.size()) return item;
    path.remove_prefix(part.size() + 1);
  }
}

Value without_case(Heap& heap, const Value& value) {
  if (!value.is(Kind::kText)) return value;
  return heap.text(with_case(*value.text, LetterCase::kLower));
}

Result<std::vector<Value>> sorted(Heap& heap, const Values& items, const Values& keys,
                                  bool reverse) {
  std::vector<size_t> order(items.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::optional<Error> failure;
  std::stable_sort(order.begin(), order.end(), [&](size_t left, size_t right) {
    if (failure || !heap.check().ok()) return false;
    auto less = reverse ? jinja_less(heap, keys[right], keys[left])
                        : jinja_less(heap, keys[left], keys[right]);
    if (!less.ok()) failure = less.error();
    return less.ok() && less.value();
  });
  if (failure) return *failure;
  TRY(heap.check());
  Values result;
  for (const size_t index : order) result.push_back(items[index]);
  return result;
}

Result<Value> filter_batch(Heap& heap, const Value& subject, const Arguments& arguments) {
  const int64_t size = TRY(group_count(arguments, "linecount"));
  const Value* fill = filler(arguments);
  Values batches, batch;
  for (const Value& item : TRY(jinja_items(heap, subject))) {
    if (static_cast<int64_t>(batch.size()) == size) {
      batches.push_back(heap.list(std::move(batch)));
      batch = {};
      TRY(heap.check());
    }
    batch.push_back(item);
  }
  if (!batch.empty()) {
    const auto wanted = static_cast<size_t>(std::max<int64_t>(size, 0));
    if (fill && batch.size() < wanted) batch.resize(wanted, *fill);
    batches.push_back(heap.list(std::move(batch)));
  }
  return heap.list(std::move(batches), Shape::kGenerator);
}

// The first slices have one element more, where they cannot be equal.
Result<Value> filter_slice(Heap& heap, const Value& subject, const Arguments& arguments) {
  const int64_t count = TRY(group_count(arguments, "slices"));
  if (count == 0) return jinja_error("integer division or modulo by zero");
  const Value* fill = filler(arguments);
  const Values items = TRY(jinja_items(heap, subject));
  const auto size = static_cast<int64_t>(items.size());
  Values slices;
  int64_t begin = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t end = begin + size / count + (i < size % count ? 1 : 0);
    Values slice(items.begin() + begin, items.begin() + end);
    if (fill && i >= size % count) slice.push_back(*fill);
    slices.push_back(heap.list(std::move(slice)));
    TRY(heap.check());
    begin = end;
  }
  return heap.list(std::move(slices), Shape::kGenerator);
}

// Pairs of a key, as the first item of the group has it, and the group.
Result<Value> filter_groupby(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Value* attribute = TRY(arguments.need(0, "attribute"));
  const bool case_sensitive = arguments.flag(2, "case_sensitive", false);
  Values pairs, keys;
  for (const Value& item : TRY(jinja_items(heap, subject))) {
    const Value key = TRY(grouping_key(heap, item, arguments, *attribute));
    keys.push_back(case_sensitive ? key : without_case(heap, key));
    pairs.push_back(heap.list({keys.back(), key, item}, Shape::kTuple));
    TRY(heap.check());
  }
  Values groups, group;
  const auto end_group = [&](const Value& key) {
    groups.push_back(heap.list({key, heap.list(std::exchange(group, {}))}, Shape::kTuple));
  };
  const List* first = nullptr;  // of the group
  for (const Value& pair : TRY(sorted(heap, pairs, keys, false))) {
    if (first && !jinja_equal(heap, first->items[0], pair.list->items[0])) {
      end_group(first->items[1]);
      first = nullptr;
    }
    if (!first) first = pair.list;
    group.push_back(pair.list->items[2]);
    TRY(heap.check());
  }
  if (first) end_group(first->items[1]);
  return heap.list(std::move(groups));
}

}  // namespace lockstep::jinja

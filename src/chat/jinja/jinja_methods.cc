#include "chat/jinja/jinja_methods.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja/jinja_text.h"

namespace lockstep::jinja {
namespace {

using MethodFunction = Result<Value> (*)(Heap&, const Value& object, const Arguments&);

struct NamedMethod {
  std::string_view name;
  MethodFunction call;  // null: exists in Python, but templates may not use it
};

Result<Value> dict_get(Heap&, const Value& object, const Arguments& arguments) {
  const Value* key = TRY(arguments.need(0, "key"));
  const Value* value = is_dict_key(*key) ? object.dict->find(*key) : nullptr;
  if (value) return *value;
  const Value* otherwise = arguments.find(1, "default");
  return otherwise ? *otherwise : Value();
}

Result<Value> dict_items(Heap& heap, const Value& object, const Arguments&) {
  std::vector<Value> items;
  for (const Pair& entry : object.dict->entries()) {
    items.push_back(heap.list({entry.first, entry.second}, Shape::kTuple));
  }
  return heap.list(std::move(items));
}

Result<Value> dict_keys(Heap& heap, const Value& object, const Arguments&) {
  std::vector<Value> items;
  for (const Pair& entry : object.dict->entries()) items.push_back(entry.first);
  return heap.list(std::move(items));
}

Result<Value> dict_values(Heap& heap, const Value& object, const Arguments&) {
  std::vector<Value> items;
  for (const Pair& entry : object.dict->entries()) items.push_back(entry.second);
  return heap.list(std::move(items));
}

Result<Value> dict_copy(Heap& heap, const Value& object, const Arguments&) {
  const Value copy = heap.dict();
  heap.charge_bytes(object.dict->entries().size() * sizeof(Pair) * 2);
  *copy.dict = *object.dict;
  return copy;
}

Result<Value> list_append(Heap& heap, const Value& object, const Arguments& arguments) {
  object.list->items.push_back(*TRY(arguments.need(0, "object")));
  heap.charge_bytes(sizeof(Value));
  return Value();
}

Result<Value> list_extend(Heap& heap, const Value& object, const Arguments& arguments) {
  const auto items = TRY(jinja_items(heap, *TRY(arguments.need(0, "iterable"))));
  object.list->items.insert(object.list->items.end(), items.begin(), items.end());
  heap.charge_bytes(items.size() * sizeof(Value));
  return Value();
}

Result<Value> list_pop(Heap& heap, const Value& object, const Arguments& arguments) {
  auto& items = object.list->items;
  int64_t at = TRY(arguments.integer(0, "index", -1));
  const auto count = static_cast<int64_t>(items.size());
  if (at < 0) at += count;
  if (count == 0) return jinja_error("pop from empty list");
  if (at < 0 || at >= count) return jinja_error("pop index out of range");
  const Value value = items[static_cast<size_t>(at)];
  heap.charge_look(static_cast<size_t>(count - at) * sizeof(Value));
  items.erase(items.begin() + at);
  return value;
}

Result<Value> list_insert(Heap& heap, const Value& object, const Arguments& arguments) {
  auto& items = object.list->items;
  const auto count = static_cast<int64_t>(items.size());
  int64_t at = TRY(arguments.integer(0, "index", 0));
  if (at < 0) at = std::max<int64_t>(at + count, 0);
  const Value value = *TRY(arguments.need(1, "object"));
  items.insert(items.begin() + std::min(at, count), value);
  heap.charge_bytes(sizeof(Value));
  heap.charge_look(items.size() * sizeof(Value));
  return Value();
}

Result<Value> list_index(Heap& heap, const Value& object, const Arguments& arguments) {
  const Value* wanted = TRY(arguments.need(0, "value"));
  const auto& items = object.list->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (jinja_equal(heap, items[i], *wanted)) return Value::of(static_cast<int64_t>(i));
  }
  return jinja_error("the value is not in the list");
}

Result<Value> list_count(Heap& heap, const Value& object, const Arguments& arguments) {
  const Value* wanted = TRY(arguments.need(0, "value"));
  const auto& items = object.list->items;
  return Value::of(
      static_cast<int64_t>(std::count_if(items.begin(), items.end(), [&](const Value& item) {
        return jinja_equal(heap, item, *wanted);
      })));
}

constexpr NamedMethod kDictMethods[] = {
    {"clear", nullptr},      {"copy", dict_copy}, {"fromkeys", nullptr},   {"get", dict_get},
    {"items", dict_items},   {"keys", dict_keys}, {"pop", nullptr},        {"popitem", nullptr},
    {"setdefault", nullptr}, {"update", nullptr}, {"values", dict_values},
};

constexpr NamedMethod kListMethods[] = {
    {"append", list_append}, {"clear", nullptr},    {"copy", nullptr},       {"count", list_count},
    {"extend", list_extend}, {"index", list_index}, {"insert", list_insert}, {"pop", list_pop},
    {"remove", nullptr},     {"reverse", nullptr},  {"sort", nullptr},
};

constexpr NamedMethod kTextMethods[] = {
    {"capitalize", text_capitalize},
    {"count", text_count},
    {"endswith", text_ends_with},
    {"find", text_find},
    {"join", text_join},
    {"lower", text_lower},
    {"lstrip", text_strip_left},
    {"removeprefix", text_remove_prefix},
    {"removesuffix", text_remove_suffix},
    {"replace", text_replace},
    {"rsplit", text_split_right},
    {"rstrip", text_strip_right},
    {"split", text_split},
    {"splitlines", text_split_lines},
    {"startswith", text_starts_with},
    {"strip", text_strip},
    {"title", text_title},
    {"upper", text_upper},
};

template <size_t N>
const NamedMethod* lookup(const NamedMethod (&table)[N], std::string_view name) {
  const auto* entry =
      std::find_if(std::begin(table), std::end(table),
                   [name](const NamedMethod& candidate) { return candidate.name == name; });
  return entry == std::end(table) ? nullptr : entry;
}

const NamedMethod* lookup(const Value& object, std::string_view name) {
  if (object.is(Kind::kText)) return lookup(kTextMethods, name);
  if (object.is(Kind::kDict)) return lookup(kDictMethods, name);
  const bool list = object.is(Kind::kList) && object.list->shape == Shape::kList;
  return list ? lookup(kListMethods, name) : nullptr;
}

}  // namespace

const Value* Arguments::find(std::string_view keyword) const {
  for (const auto& entry : keywords) {
    if (entry.first == keyword) return &entry.second;
  }
  return nullptr;
}

const Value* Arguments::find(size_t place, std::string_view keyword) const {
  return place < positional.size() ? &positional[place] : find(keyword);
}

bool Arguments::flag(size_t place, std::string_view keyword, bool otherwise) const {
  const Value* value = find(place, keyword);
  return value ? is_true(*value) : otherwise;
}

Result<int64_t> Arguments::integer(size_t place, std::string_view keyword,
                                   int64_t otherwise) const {
  const Value* value = find(place, keyword);
  if (!value) return otherwise;
  if (!value->is(Kind::kInt) && !value->is(Kind::kBool)) {
    return jinja_error(fmt::format("'{}' object cannot be interpreted as an integer for {}",
                                   type_name(*value), keyword));
  }
  return value->as_int();
}

Result<const Value*> Arguments::need(size_t place, std::string_view keyword) const {
  const Value* value = find(place, keyword);
  if (!value) return jinja_error(fmt::format("the argument {} is missing", keyword));
  return value;
}

std::string_view find_method(const Value& object, std::string_view name) {
  const NamedMethod* method = lookup(object, name);
  return method ? method->name : std::string_view();
}

Result<Value> call_method(Heap& heap, const Method& method, const Arguments& arguments) {
  const NamedMethod* named = lookup(method.object, method.name);
  if (!named || !named->call) {
    return jinja_error(
        fmt::format("chat templates cannot call {}.{}", type_name(method.object), method.name));
  }
  auto result = named->call(heap, method.object, arguments);
  TRY(heap.check());
  return result;
}

}  // namespace lockstep::jinja

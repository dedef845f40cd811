#include "chat/jinja/jinja_methods.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja/jinja_text.h"

namespace lockstep {
namespace {

using Arguments = JinjaArguments;
using Method = Result<JinjaValue> (*)(JinjaHeap&, const JinjaValue& object, const Arguments&);

struct NamedMethod {
  std::string_view name;
  Method call;  // null: exists in Python, but templates may not use it
};

Result<JinjaValue> dict_get(JinjaHeap&, const JinjaValue& object, const Arguments& arguments) {
  const JinjaValue* key = TRY(arguments.need(0, "key"));
  const JinjaValue* value = is_dict_key(*key) ? object.dict->find(*key) : nullptr;
  if (value) return *value;
  const JinjaValue* otherwise = arguments.find(1, "default");
  return otherwise ? *otherwise : JinjaValue();
}

Result<JinjaValue> dict_items(JinjaHeap& heap, const JinjaValue& object, const Arguments&) {
  std::vector<JinjaValue> items;
  for (const JinjaPair& entry : object.dict->entries()) {
    items.push_back(heap.list({entry.first, entry.second}, JinjaShape::kTuple));
  }
  return heap.list(std::move(items));
}

Result<JinjaValue> dict_keys(JinjaHeap& heap, const JinjaValue& object, const Arguments&) {
  std::vector<JinjaValue> items;
  for (const JinjaPair& entry : object.dict->entries()) items.push_back(entry.first);
  return heap.list(std::move(items));
}

Result<JinjaValue> dict_values(JinjaHeap& heap, const JinjaValue& object, const Arguments&) {
  std::vector<JinjaValue> items;
  for (const JinjaPair& entry : object.dict->entries()) items.push_back(entry.second);
  return heap.list(std::move(items));
}

Result<JinjaValue> dict_copy(JinjaHeap& heap, const JinjaValue& object, const Arguments&) {
  const JinjaValue copy = heap.dict();
  heap.charge_bytes(object.dict->entries().size() * sizeof(JinjaPair) * 2);
  *copy.dict = *object.dict;
  return copy;
}

Result<JinjaValue> list_append(JinjaHeap& heap, const JinjaValue& object,
                               const Arguments& arguments) {
  object.list->items.push_back(*TRY(arguments.need(0, "object")));
  heap.charge_bytes(sizeof(JinjaValue));
  return JinjaValue();
}

Result<JinjaValue> list_extend(JinjaHeap& heap, const JinjaValue& object,
                               const Arguments& arguments) {
  const auto items = TRY(jinja_items(heap, *TRY(arguments.need(0, "iterable"))));
  object.list->items.insert(object.list->items.end(), items.begin(), items.end());
  heap.charge_bytes(items.size() * sizeof(JinjaValue));
  return JinjaValue();
}

Result<JinjaValue> list_pop(JinjaHeap& heap, const JinjaValue& object, const Arguments& arguments) {
  auto& items = object.list->items;
  int64_t at = TRY(arguments.integer(0, "index", -1));
  const auto count = static_cast<int64_t>(items.size());
  if (at < 0) at += count;
  if (count == 0) return jinja_error("pop from empty list");
  if (at < 0 || at >= count) return jinja_error("pop index out of range");
  const JinjaValue value = items[static_cast<size_t>(at)];
  heap.charge_look(static_cast<size_t>(count - at) * sizeof(JinjaValue));
  items.erase(items.begin() + at);
  return value;
}

Result<JinjaValue> list_insert(JinjaHeap& heap, const JinjaValue& object,
                               const Arguments& arguments) {
  auto& items = object.list->items;
  const auto count = static_cast<int64_t>(items.size());
  int64_t at = TRY(arguments.integer(0, "index", 0));
  if (at < 0) at = std::max<int64_t>(at + count, 0);
  const JinjaValue value = *TRY(arguments.need(1, "object"));
  items.insert(items.begin() + std::min(at, count), value);
  heap.charge_bytes(sizeof(JinjaValue));
  heap.charge_look(items.size() * sizeof(JinjaValue));
  return JinjaValue();
}

Result<JinjaValue> list_index(JinjaHeap& heap, const JinjaValue& object,
                              const Arguments& arguments) {
  const JinjaValue* wanted = TRY(arguments.need(0, "value"));
  const auto& items = object.list->items;
  for (size_t i = 0; i < items.size(); ++i) {
    if (jinja_equal(heap, items[i], *wanted)) return JinjaValue::of(static_cast<int64_t>(i));
  }
  return jinja_error("the value is not in the list");
}

Result<JinjaValue> list_count(JinjaHeap& heap, const JinjaValue& object,
                              const Arguments& arguments) {
  const JinjaValue* wanted = TRY(arguments.need(0, "value"));
  const auto& items = object.list->items;
  return JinjaValue::of(
      static_cast<int64_t>(std::count_if(items.begin(), items.end(), [&](const JinjaValue& item) {
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

const NamedMethod* lookup(const JinjaValue& object, std::string_view name) {
  if (object.is(JinjaKind::kText)) return lookup(kTextMethods, name);
  if (object.is(JinjaKind::kDict)) return lookup(kDictMethods, name);
  const bool list = object.is(JinjaKind::kList) && object.list->shape == JinjaShape::kList;
  return list ? lookup(kListMethods, name) : nullptr;
}

}  // namespace

const JinjaValue* JinjaArguments::find(std::string_view keyword) const {
  for (const auto& entry : keywords) {
    if (entry.first == keyword) return &entry.second;
  }
  return nullptr;
}

const JinjaValue* JinjaArguments::find(size_t place, std::string_view keyword) const {
  return place < positional.size() ? &positional[place] : find(keyword);
}

bool JinjaArguments::flag(size_t place, std::string_view keyword, bool otherwise) const {
  const JinjaValue* value = find(place, keyword);
  return value ? is_true(*value) : otherwise;
}

Result<int64_t> JinjaArguments::integer(size_t place, std::string_view keyword,
                                        int64_t otherwise) const {
  const JinjaValue* value = find(place, keyword);
  if (!value) return otherwise;
  if (!value->is(JinjaKind::kInt) && !value->is(JinjaKind::kBool)) {
    return jinja_error(fmt::format("'{}' object cannot be interpreted as an integer for {}",
                                   type_name(*value), keyword));
  }
  return value->as_int();
}

Result<const JinjaValue*> JinjaArguments::need(size_t place, std::string_view keyword) const {
  const JinjaValue* value = find(place, keyword);
  if (!value) return jinja_error(fmt::format("the argument {} is missing", keyword));
  return value;
}

std::string_view find_method(const JinjaValue& object, std::string_view name) {
  const NamedMethod* method = lookup(object, name);
  return method ? method->name : std::string_view();
}

Result<JinjaValue> call_method(JinjaHeap& heap, const JinjaMethod& method,
                               const JinjaArguments& arguments) {
  const NamedMethod* named = lookup(method.object, method.name);
  if (!named || !named->call) {
    return jinja_error(
        fmt::format("chat templates cannot call {}.{}", type_name(method.object), method.name));
  }
  auto result = named->call(heap, method.object, arguments);
  TRY(heap.check());
  return result;
}

}  // namespace lockstep

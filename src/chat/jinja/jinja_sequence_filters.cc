#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "chat/jinja/jinja_filters.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja/jinja_text.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

using Values = std::vector<Value>;

// The key that an item is compared by: itself or an attribute, by default case-insensitive.
Result<Value> sort_key(Heap& heap, const Value& item, const Value* attribute, bool case_sensitive) {
  Value key = item;
  if (attribute && !attribute->is(Kind::kNone)) {
    key = TRY(attribute_of(heap, item, *attribute));
  }
  return case_sensitive ? key : without_case(heap, key);
}

// The result of a lazy filter over a false value: none and 0 too, although they are no sequences.
Value nothing(Heap& heap) {
  return heap.list({}, Shape::kGenerator);
}

Result<Value> selected(Heap& heap, const Value& subject, const Arguments& arguments,
                       bool by_attribute, bool wanted) {
  if (!is_true(subject)) return nothing(heap);
  const size_t places = by_attribute ? 1 : 0;
  const Value* attribute = nullptr;
  if (by_attribute) attribute = TRY(arguments.need(0, "attribute"));
  const bool has_test = arguments.positional.size() > places;
  Arguments rest;
  if (has_test) {
    if (!arguments.positional[places].is(Kind::kText)) {
      return jinja_error("the name of a test must be a text");
    }
    rest.positional.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(places) + 1,
                           arguments.positional.end());
  }
  Values result;
  for (const Value& item : TRY(jinja_items(heap, subject))) {
    const Value value = attribute ? TRY(attribute_of(heap, item, *attribute)) : item;
    const bool passed =
        has_test ? TRY(call_test(heap, arguments.positional[places].as_string(), value, rest))
                 : is_true(value);
    if (passed == wanted) result.push_back(item);
    TRY(heap.check());
  }
  return heap.list(std::move(result), Shape::kGenerator);
}

Result<Value> extreme(Heap& heap, const Value& subject, const Arguments& arguments, bool largest) {
  const auto items = TRY(jinja_items(heap, subject));
  if (items.empty()) return heap.undefined("No aggregated item, sequence was empty.");
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  const Value* attribute = arguments.find(1, "attribute");
  Value best = items[0];
  Value best_key = TRY(sort_key(heap, best, attribute, case_sensitive));
  for (size_t i = 1; i < items.size(); ++i) {
    const Value key = TRY(sort_key(heap, items[i], attribute, case_sensitive));
    if (TRY(largest ? jinja_less(heap, best_key, key) : jinja_less(heap, key, best_key))) {
      best = items[i];
      best_key = key;
    }
  }
  return best;
}

}  // namespace

Result<Value> filter_attr(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Value* name = TRY(arguments.need(0, "name"));
  if (!name->is(Kind::kText)) return jinja_error("the name of an attribute must be a text");
  if (subject.is(Kind::kDict)) {  // only attributes, not elements
    const std::string_view method = find_method(subject, name->as_string());
    if (method.empty()) return heap.undefined("the dict has no such attribute");
    return heap.method(subject, method);
  }
  return jinja_attribute(heap, subject, name->as_string());
}

Result<Value> filter_dictsort(Heap& heap, const Value& subject, const Arguments& arguments) {
  if (!subject.is(Kind::kDict)) return jinja_error("dictsort needs a dict");
  const Value* by = arguments.find(1, "by");
  const bool by_value = by && by->is(Kind::kText) && by->as_string() == "value";
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  Values pairs;
  Values keys;
  for (const Pair& entry : subject.dict->entries()) {
    pairs.push_back(heap.list({entry.first, entry.second}, Shape::kTuple));
    keys.push_back(
        TRY(sort_key(heap, by_value ? entry.second : entry.first, nullptr, case_sensitive)));
  }
  return heap.list(TRY(sorted(heap, pairs, keys, arguments.flag(2, "reverse", false))));
}

Result<Value> filter_first(Heap& heap, const Value& subject, const Arguments&) {
  const auto items = TRY(jinja_items(heap, subject));
  return items.empty() ? heap.undefined("No first item, sequence was empty.") : items.front();
}

Result<Value> filter_last(Heap& heap, const Value& subject, const Arguments&) {
  const auto items = TRY(jinja_items(heap, subject));
  return items.empty() ? heap.undefined("No last item, sequence was empty.") : items.back();
}

Result<Value> filter_items(Heap& heap, const Value& subject, const Arguments&) {
  Values pairs;
  if (subject.is(Kind::kDict)) {
    for (const Pair& entry : subject.dict->entries()) {
      pairs.push_back(heap.list({entry.first, entry.second}, Shape::kTuple));
    }
  } else if (!subject.is(Kind::kUndefined)) {
    return jinja_error("Can only get item pairs from a mapping.");
  }
  return heap.list(std::move(pairs), Shape::kGenerator);
}

Result<Value> filter_join(Heap& heap, const Value& subject, const Arguments& arguments) {
  Values items = TRY(jinja_items(heap, subject));
  if (const Value* attribute = arguments.find(1, "attribute");
      attribute && !attribute->is(Kind::kNone)) {
    for (Value& item : items) item = TRY(attribute_of(heap, item, *attribute));
  }
  MarkedText separator;
  if (const Value* given = arguments.find(0, "d")) separator = TRY(jinja_str(heap, *given));
  return join_texts(heap, separator, items, true);
}

Result<Value> filter_list(Heap& heap, const Value& subject, const Arguments&) {
  return heap.list(TRY(jinja_items(heap, subject)));
}

Result<Value> filter_map(Heap& heap, const Value& subject, const Arguments& arguments) {
  if (!is_true(subject)) return nothing(heap);
  Values items = TRY(jinja_items(heap, subject));
  const Value* attribute = arguments.find("attribute");
  if (arguments.positional.empty() && attribute) {
    const Value* fallback = arguments.find("default");
    for (Value& item : items) {
      item = TRY(attribute_of(heap, item, *attribute));
      if (item.is(Kind::kUndefined) && fallback) item = *fallback;
    }
    return heap.list(std::move(items), Shape::kGenerator);
  }
  const Value* name = TRY(arguments.need(0, "filter"));
  if (!name->is(Kind::kText)) return jinja_error("the name of a filter must be a text");
  // A filter that maps itself would nest endlessly.
  if (name->as_string() == "map") return jinja_error("map cannot be mapped");
  Arguments rest;
  rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
  rest.keywords = arguments.keywords;
  for (Value& item : items) item = TRY(call_filter(heap, name->as_string(), item, rest));
  return heap.list(std::move(items), Shape::kGenerator);
}

Result<Value> filter_max(Heap& heap, const Value& subject, const Arguments& arguments) {
  return extreme(heap, subject, arguments, true);
}

Result<Value> filter_min(Heap& heap, const Value& subject, const Arguments& arguments) {
  return extreme(heap, subject, arguments, false);
}

Result<Value> filter_reject(Heap& heap, const Value& subject, const Arguments& arguments) {
  return selected(heap, subject, arguments, false, false);
}

Result<Value> filter_rejectattr(Heap& heap, const Value& subject, const Arguments& arguments) {
  return selected(heap, subject, arguments, true, false);
}

Result<Value> filter_select(Heap& heap, const Value& subject, const Arguments& arguments) {
  return selected(heap, subject, arguments, false, true);
}

Result<Value> filter_selectattr(Heap& heap, const Value& subject, const Arguments& arguments) {
  return selected(heap, subject, arguments, true, true);
}

Result<Value> filter_reverse(Heap& heap, const Value& subject, const Arguments&) {
  Values items = TRY(jinja_items(heap, subject));
  std::reverse(items.begin(), items.end());
  if (!subject.is(Kind::kText)) return heap.list(std::move(items), Shape::kGenerator);
  return join_texts(heap, MarkedText(), items, false);
}

// Keys are lists, as in Jinja, so that two missing attributes are equal and not an error.
Result<Value> filter_sort(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Values items = TRY(jinja_items(heap, subject));
  const bool case_sensitive = arguments.flag(1, "case_sensitive", false);
  const Value* attribute = arguments.find(2, "attribute");
  Values attributes = {attribute ? *attribute : Value()};
  if (attribute && attribute->is(Kind::kText)) {
    Arguments comma;
    comma.positional = {heap.text(",")};
    attributes = TRY(text_split(heap, *attribute, comma)).list->items;
  }
  Values keys;
  for (const Value& item : items) {
    Values parts;
    for (const Value& part : attributes) {
      parts.push_back(TRY(sort_key(heap, item, &part, case_sensitive)));
    }
    keys.push_back(heap.list(std::move(parts)));
    TRY(heap.check());
  }
  return heap.list(TRY(sorted(heap, items, keys, arguments.flag(0, "reverse", false))));
}

Result<Value> filter_sum(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Value* attribute = arguments.find(0, "attribute");
  const Value* start = arguments.find(1, "start");
  Value total = start ? *start : Value::of(int64_t{0});
  for (const Value& item : TRY(jinja_items(heap, subject))) {
    const Value value = TRY(sort_key(heap, item, attribute, true));
    total = TRY(jinja_arithmetic(heap, Arithmetic::kAdd, total, value));
    TRY(heap.check());
  }
  return total;
}

Result<Value> filter_unique(Heap& heap, const Value& subject, const Arguments& arguments) {
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  const Value* attribute = arguments.find(1, "attribute");
  const Value seen = heap.dict();
  Values result;
  for (const Value& item : TRY(jinja_items(heap, subject))) {
    const Value key = TRY(sort_key(heap, item, attribute, case_sensitive));
    if (!is_dict_key(key)) {
      return jinja_error(fmt::format("unhashable type: '{}'", type_name(key)));
    }
    heap.charge_bytes(sizeof(Pair));
    TRY(heap.check());
    if (seen.dict->find(key)) continue;
    seen.dict->set(key, Value());
    result.push_back(item);
  }
  return heap.list(std::move(result), Shape::kGenerator);
}

}  // namespace lockstep::jinja

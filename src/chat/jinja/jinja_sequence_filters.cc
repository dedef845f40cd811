#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "chat/jinja/jinja_filters.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/jinja/jinja_text.h"
#include "chat/text/characters.h"

namespace lockstep {
namespace {

using Values = std::vector<JinjaValue>;

// The key that an item is compared by: itself or an attribute, by default case-insensitive.
Result<JinjaValue> sort_key(JinjaHeap& heap, const JinjaValue& item, const JinjaValue* attribute,
                            bool case_sensitive) {
  JinjaValue key = item;
  if (attribute && !attribute->is(JinjaKind::kNone)) {
    key = TRY(attribute_of(heap, item, *attribute));
  }
  return case_sensitive ? key : without_case(heap, key);
}

// The result of a lazy filter over a false value: none and 0 too, although they are no sequences.
JinjaValue nothing(JinjaHeap& heap) {
  return heap.list({}, JinjaShape::kGenerator);
}

Result<JinjaValue> selected(JinjaHeap& heap, const JinjaValue& subject,
                            const JinjaArguments& arguments, bool by_attribute, bool wanted) {
  if (!is_true(subject)) return nothing(heap);
  const size_t places = by_attribute ? 1 : 0;
  const JinjaValue* attribute = nullptr;
  if (by_attribute) attribute = TRY(arguments.need(0, "attribute"));
  const bool has_test = arguments.positional.size() > places;
  JinjaArguments rest;
  if (has_test) {
    if (!arguments.positional[places].is(JinjaKind::kText)) {
      return jinja_error("the name of a test must be a text");
    }
    rest.positional.assign(arguments.positional.begin() + static_cast<ptrdiff_t>(places) + 1,
                           arguments.positional.end());
  }
  Values result;
  for (const JinjaValue& item : TRY(jinja_items(heap, subject))) {
    const JinjaValue value = attribute ? TRY(attribute_of(heap, item, *attribute)) : item;
    const bool passed =
        has_test ? TRY(call_test(heap, arguments.positional[places].as_string(), value, rest))
                 : is_true(value);
    if (passed == wanted) result.push_back(item);
    TRY(heap.check());
  }
  return heap.list(std::move(result), JinjaShape::kGenerator);
}

Result<JinjaValue> extreme(JinjaHeap& heap, const JinjaValue& subject,
                           const JinjaArguments& arguments, bool largest) {
  const auto items = TRY(jinja_items(heap, subject));
  if (items.empty()) return heap.undefined("No aggregated item, sequence was empty.");
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  const JinjaValue* attribute = arguments.find(1, "attribute");
  JinjaValue best = items[0];
  JinjaValue best_key = TRY(sort_key(heap, best, attribute, case_sensitive));
  for (size_t i = 1; i < items.size(); ++i) {
    const JinjaValue key = TRY(sort_key(heap, items[i], attribute, case_sensitive));
    if (TRY(largest ? jinja_less(heap, best_key, key) : jinja_less(heap, key, best_key))) {
      best = items[i];
      best_key = key;
    }
  }
  return best;
}

}  // namespace

Result<JinjaValue> filter_attr(JinjaHeap& heap, const JinjaValue& subject,
                               const JinjaArguments& arguments) {
  const JinjaValue* name = TRY(arguments.need(0, "name"));
  if (!name->is(JinjaKind::kText)) return jinja_error("the name of an attribute must be a text");
  if (subject.is(JinjaKind::kDict)) {  // only attributes, not elements
    const std::string_view method = find_method(subject, name->as_string());
    if (method.empty()) return heap.undefined("the dict has no such attribute");
    return heap.method(subject, method);
  }
  return jinja_attribute(heap, subject, name->as_string());
}

Result<JinjaValue> filter_dictsort(JinjaHeap& heap, const JinjaValue& subject,
                                   const JinjaArguments& arguments) {
  if (!subject.is(JinjaKind::kDict)) return jinja_error("dictsort needs a dict");
  const JinjaValue* by = arguments.find(1, "by");
  const bool by_value = by && by->is(JinjaKind::kText) && by->as_string() == "value";
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  Values pairs;
  Values keys;
  for (const JinjaPair& entry : subject.dict->entries()) {
    pairs.push_back(heap.list({entry.first, entry.second}, JinjaShape::kTuple));
    keys.push_back(
        TRY(sort_key(heap, by_value ? entry.second : entry.first, nullptr, case_sensitive)));
  }
  return heap.list(TRY(sorted(heap, pairs, keys, arguments.flag(2, "reverse", false))));
}

Result<JinjaValue> filter_first(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments&) {
  const auto items = TRY(jinja_items(heap, subject));
  return items.empty() ? heap.undefined("No first item, sequence was empty.") : items.front();
}

Result<JinjaValue> filter_last(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments&) {
  const auto items = TRY(jinja_items(heap, subject));
  return items.empty() ? heap.undefined("No last item, sequence was empty.") : items.back();
}

Result<JinjaValue> filter_items(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments&) {
  Values pairs;
  if (subject.is(JinjaKind::kDict)) {
    for (const JinjaPair& entry : subject.dict->entries()) {
      pairs.push_back(heap.list({entry.first, entry.second}, JinjaShape::kTuple));
    }
  } else if (!subject.is(JinjaKind::kUndefined)) {
    return jinja_error("Can only get item pairs from a mapping.");
  }
  return heap.list(std::move(pairs), JinjaShape::kGenerator);
}

Result<JinjaValue> filter_join(JinjaHeap& heap, const JinjaValue& subject,
                               const JinjaArguments& arguments) {
  Values items = TRY(jinja_items(heap, subject));
  if (const JinjaValue* attribute = arguments.find(1, "attribute");
      attribute && !attribute->is(JinjaKind::kNone)) {
    for (JinjaValue& item : items) item = TRY(attribute_of(heap, item, *attribute));
  }
  MarkedText separator;
  if (const JinjaValue* given = arguments.find(0, "d")) separator = TRY(jinja_str(heap, *given));
  return join_texts(heap, separator, items, true);
}

Result<JinjaValue> filter_list(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments&) {
  return heap.list(TRY(jinja_items(heap, subject)));
}

Result<JinjaValue> filter_map(JinjaHeap& heap, const JinjaValue& subject,
                              const JinjaArguments& arguments) {
  if (!is_true(subject)) return nothing(heap);
  Values items = TRY(jinja_items(heap, subject));
  const JinjaValue* attribute = arguments.find("attribute");
  if (arguments.positional.empty() && attribute) {
    const JinjaValue* fallback = arguments.find("default");
    for (JinjaValue& item : items) {
      item = TRY(attribute_of(heap, item, *attribute));
      if (item.is(JinjaKind::kUndefined) && fallback) item = *fallback;
    }
    return heap.list(std::move(items), JinjaShape::kGenerator);
  }
  const JinjaValue* name = TRY(arguments.need(0, "filter"));
  if (!name->is(JinjaKind::kText)) return jinja_error("the name of a filter must be a text");
  // A filter that maps itself would nest endlessly.
  if (name->as_string() == "map") return jinja_error("map cannot be mapped");
  JinjaArguments rest;
  rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
  rest.keywords = arguments.keywords;
  for (JinjaValue& item : items) item = TRY(call_filter(heap, name->as_string(), item, rest));
  return heap.list(std::move(items), JinjaShape::kGenerator);
}

Result<JinjaValue> filter_max(JinjaHeap& heap, const JinjaValue& subject,
                              const JinjaArguments& arguments) {
  return extreme(heap, subject, arguments, true);
}

Result<JinjaValue> filter_min(JinjaHeap& heap, const JinjaValue& subject,
                              const JinjaArguments& arguments) {
  return extreme(heap, subject, arguments, false);
}

Result<JinjaValue> filter_reject(JinjaHeap& heap, const JinjaValue& subject,
                                 const JinjaArguments& arguments) {
  return selected(heap, subject, arguments, false, false);
}

Result<JinjaValue> filter_rejectattr(JinjaHeap& heap, const JinjaValue& subject,
                                     const JinjaArguments& arguments) {
  return selected(heap, subject, arguments, true, false);
}

Result<JinjaValue> filter_select(JinjaHeap& heap, const JinjaValue& subject,
                                 const JinjaArguments& arguments) {
  return selected(heap, subject, arguments, false, true);
}

Result<JinjaValue> filter_selectattr(JinjaHeap& heap, const JinjaValue& subject,
                                     const JinjaArguments& arguments) {
  return selected(heap, subject, arguments, true, true);
}

Result<JinjaValue> filter_reverse(JinjaHeap& heap, const JinjaValue& subject,
                                  const JinjaArguments&) {
  Values items = TRY(jinja_items(heap, subject));
  std::reverse(items.begin(), items.end());
  if (!subject.is(JinjaKind::kText)) return heap.list(std::move(items), JinjaShape::kGenerator);
  return join_texts(heap, MarkedText(), items, false);
}

// Keys are lists, as in Jinja, so that two missing attributes are equal and not an error.
Result<JinjaValue> filter_sort(JinjaHeap& heap, const JinjaValue& subject,
                               const JinjaArguments& arguments) {
  const Values items = TRY(jinja_items(heap, subject));
  const bool case_sensitive = arguments.flag(1, "case_sensitive", false);
  const JinjaValue* attribute = arguments.find(2, "attribute");
  Values attributes = {attribute ? *attribute : JinjaValue()};
  if (attribute && attribute->is(JinjaKind::kText)) {
    JinjaArguments comma;
    comma.positional = {heap.text(",")};
    attributes = TRY(text_split(heap, *attribute, comma)).list->items;
  }
  Values keys;
  for (const JinjaValue& item : items) {
    Values parts;
    for (const JinjaValue& part : attributes) {
      parts.push_back(TRY(sort_key(heap, item, &part, case_sensitive)));
    }
    keys.push_back(heap.list(std::move(parts)));
    TRY(heap.check());
  }
  return heap.list(TRY(sorted(heap, items, keys, arguments.flag(0, "reverse", false))));
}

Result<JinjaValue> filter_sum(JinjaHeap& heap, const JinjaValue& subject,
                              const JinjaArguments& arguments) {
  const JinjaValue* attribute = arguments.find(0, "attribute");
  const JinjaValue* start = arguments.find(1, "start");
  JinjaValue total = start ? *start : JinjaValue::of(int64_t{0});
  for (const JinjaValue& item : TRY(jinja_items(heap, subject))) {
    const JinjaValue value = TRY(sort_key(heap, item, attribute, true));
    total = TRY(jinja_arithmetic(heap, JinjaArithmetic::kAdd, total, value));
    TRY(heap.check());
  }
  return total;
}

Result<JinjaValue> filter_unique(JinjaHeap& heap, const JinjaValue& subject,
                                 const JinjaArguments& arguments) {
  const bool case_sensitive = arguments.flag(0, "case_sensitive", false);
  const JinjaValue* attribute = arguments.find(1, "attribute");
  const JinjaValue seen = heap.dict();
  Values result;
  for (const JinjaValue& item : TRY(jinja_items(heap, subject))) {
    const JinjaValue key = TRY(sort_key(heap, item, attribute, case_sensitive));
    if (!is_dict_key(key)) {
      return jinja_error(fmt::format("unhashable type: '{}'", type_name(key)));
    }
    heap.charge_bytes(sizeof(JinjaPair));
    TRY(heap.check());
    if (seen.dict->find(key)) continue;
    seen.dict->set(key, JinjaValue());
    result.push_back(item);
  }
  return heap.list(std::move(result), JinjaShape::kGenerator);
}

}  // namespace lockstep

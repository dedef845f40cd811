// Elements, attributes, slices, membership.
#include <fmt/core.h>

#include <algorithm>

#include "base/utf8.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

std::string owner_name(const Value& object) {
  if (object.is(Kind::kNone)) return "None";
  return fmt::format("'{} object'", type_name(object));
}

Value no_attribute(Heap& heap, const Value& object, std::string_view name) {
  return heap.undefined(fmt::format("{} has no attribute '{}'", owner_name(object), name));
}

Result<Value> no_element(Heap& heap, const Value& object, const Value& key) {
  if (key.is(Kind::kText)) return no_attribute(heap, object, key.as_string());
  const MarkedText shown = TRY(jinja_repr(heap, key));
  return heap.undefined(fmt::format("{} has no element {}", owner_name(object), shown.text()));
}

std::optional<Value> loop_attribute(Heap& heap, const Loop& loop, std::string_view name) {
  const auto& items = *loop.items;
  const auto index = static_cast<int64_t>(loop.index);
  const auto count = static_cast<int64_t>(items.size());
  if (name == "index") return Value::of(index + 1);
  if (name == "index0") return Value::of(index);
  if (name == "revindex") return Value::of(count - index);
  if (name == "revindex0") return Value::of(count - index - 1);
  if (name == "first") return Value::boolean(index == 0);
  if (name == "last") return Value::boolean(index + 1 == count);
  if (name == "length") return Value::of(count);
  if (name == "depth") return Value::of(static_cast<int64_t>(loop.depth));
  if (name == "depth0") return Value::of(static_cast<int64_t>(loop.depth) - 1);
  if (name == "previtem") {
    return index > 0 ? items[loop.index - 1] : heap.undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < count ? items[loop.index + 1] : heap.undefined("there is no next item");
  }
  return std::nullopt;
}

std::optional<Value> own_attribute(Heap& heap, const Value& object, std::string_view name) {
  if (object.is(Kind::kLoop)) return loop_attribute(heap, *object.loop, name);
  if (object.is(Kind::kNamespace)) {
    const Value* value = object.dict->find(name);
    return value ? std::optional(*value) : std::nullopt;
  }
  const std::string_view method = find_method(object, name);
  return method.empty() ? std::nullopt : std::optional(heap.method(object, method));
}

std::optional<Value> element(Heap& heap, const Value& object, const Value& key) {
  if (object.is(Kind::kDict)) {
    const Value* value = is_dict_key(key) ? object.dict->find(key) : nullptr;
    return value ? std::optional(*value) : std::nullopt;
  }
  if (!key.is(Kind::kInt) && !key.is(Kind::kBool)) return std::nullopt;
  int64_t index = key.as_int();
  if (object.is(Kind::kList) && object.list->shape != Shape::kGenerator) {
    const auto& items = object.list->items;
    if (index < 0) index += static_cast<int64_t>(items.size());
    if (index < 0 || index >= static_cast<int64_t>(items.size())) return std::nullopt;
    return items[static_cast<size_t>(index)];
  }
  if (object.is(Kind::kText)) {
    const std::string& text = object.as_string();
    heap.charge_look(text.size());
    if (index < 0) index += static_cast<int64_t>(count_code_points(text));
    if (index < 0) return std::nullopt;
    const size_t begin = code_point_offset(text, static_cast<size_t>(index));
    if (begin == text.size()) return std::nullopt;
    const size_t bytes = first_utf8_character(std::string_view(text).substr(begin)).bytes;
    return heap.text(object.text->part(begin, bytes)).like(object);
  }
  return std::nullopt;
}

// A slice by Python's rules: its first element and number of elements.
struct SlicePlan {
  int64_t begin;
  int64_t count;
};

SlicePlan plan_slice(const SliceBounds& bounds, int64_t count) {
  const int64_t lowest = bounds.step < 0 ? -1 : 0;
  const int64_t highest = bounds.step < 0 ? count - 1 : count;
  const auto placed = [&](int64_t at) {
    if (at < 0) at += count;
    return std::clamp(at, lowest, highest);
  };
  const int64_t begin = bounds.start ? placed(*bounds.start) : bounds.step < 0 ? highest : lowest;
  const int64_t end = bounds.stop ? placed(*bounds.stop) : bounds.step < 0 ? lowest : highest;
  const int64_t distance = bounds.step < 0 ? begin - end : end - begin;
  if (distance <= 0) return {begin, 0};
  // The step may exceed the distance, and may be as large as an integer can be.
  const int64_t stride = bounds.step < 0 ? -(bounds.step + 1) : bounds.step - 1;
  return {begin, 1 + (stride == INT64_MAX ? 0 : (distance - 1) / (stride + 1))};
}

Value slice_text(Heap& heap, const MarkedText& text, const SliceBounds& bounds) {
  heap.charge_look(text.size());
  const auto count = static_cast<int64_t>(count_code_points(text.text()));
  const SlicePlan plan = plan_slice(bounds, count);
  if (bounds.step == 1 || plan.count <= 1) {
    if (plan.count == 0) return heap.text("");
    const std::string_view bytes = text.text();
    const size_t begin = code_point_offset(bytes, static_cast<size_t>(plan.begin));
    const size_t size = code_point_offset(bytes.substr(begin), static_cast<size_t>(plan.count));
    return heap.text(text.part(begin, size));
  }
  std::vector<size_t> starts;
  for (size_t at = 0; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text.text()[at]) & 0xC0) != 0x80) starts.push_back(at);
  }
  starts.push_back(text.size());
  MarkedText result;
  for (int64_t i = 0; i < plan.count; ++i) {
    const auto at = static_cast<size_t>(plan.begin + i * bounds.step);
    result.append_part(text, starts[at], starts[at + 1] - starts[at]);
  }
  return heap.text(std::move(result));
}

}  // namespace

Result<Value> jinja_attribute(Heap& heap, const Value& object, std::string_view name) {
  if (object.is(Kind::kUndefined)) return jinja_error(object.as_string());
  if (const auto value = own_attribute(heap, object, name)) return *value;
  if (object.is(Kind::kDict)) {
    if (const Value* value = object.dict->find(name)) return *value;
  }
  return no_attribute(heap, object, name);
}

Result<Value> jinja_subscript(Heap& heap, const Value& object, const Value& key) {
  if (object.is(Kind::kUndefined)) return jinja_error(object.as_string());
  if (const auto value = element(heap, object, key)) return *value;
  if (key.is(Kind::kText)) {
    if (const auto value = own_attribute(heap, object, key.as_string())) return *value;
  }
  return no_element(heap, object, key);
}

Result<Value> jinja_slice(Heap& heap, const Value& object, const SliceBounds& bounds) {
  if (object.is(Kind::kUndefined)) return jinja_error(object.as_string());
  if (bounds.step == 0) return jinja_error("slice step cannot be zero");
  if (object.is(Kind::kText)) return slice_text(heap, *object.text, bounds).like(object);
  if (!object.is(Kind::kList)) {
    return heap.undefined(fmt::format("{} has no slices", owner_name(object)));
  }
  const auto& items = object.list->items;
  const SlicePlan plan = plan_slice(bounds, static_cast<int64_t>(items.size()));
  std::vector<Value> result;
  for (int64_t i = 0; i < plan.count; ++i) {
    result.push_back(items[static_cast<size_t>(plan.begin + i * bounds.step)]);
  }
  return heap.list(std::move(result), object.list->shape);
}

Result<bool> jinja_contains(Heap& heap, const Value& container, const Value& item) {
  if (container.is(Kind::kText)) {
    if (item.is(Kind::kUndefined)) return jinja_error(item.as_string());
    if (!item.is(Kind::kText)) {
      return jinja_error(
          fmt::format("'in <string>' requires string as left operand, not {}", type_name(item)));
    }
    heap.charge_look(container.text->size() + item.text->size());
    return find_text(container.as_string(), item.as_string()) != std::string::npos;
  }
  if (container.is(Kind::kDict)) {
    if (is_dict_key(item)) return container.dict->find(item) != nullptr;
    if (item.is(Kind::kUndefined)) return false;
    return jinja_error(fmt::format("unhashable type: '{}'", type_name(item)));
  }
  if (container.is(Kind::kList)) {
    const auto& items = container.list->items;
    return std::any_of(items.begin(), items.end(),
                       [&](const Value& candidate) { return jinja_equal(heap, candidate, item); });
  }
  if (container.is(Kind::kUndefined)) return false;
  return jinja_error(fmt::format("argument of type '{}' is not iterable", type_name(container)));
}

Result<std::vector<Value>> jinja_items(Heap& heap, const Value& value) {
  std::vector<Value> items;
  switch (value.kind) {
    case Kind::kUndefined:
      break;
    case Kind::kList:
      if (value.list->shape == Shape::kGenerator) {
        items.swap(value.list->items);
      } else {
        items = value.list->items;
      }
      break;
    case Kind::kDict:
      for (const Pair& entry : value.dict->entries()) items.push_back(entry.first);
      break;
    case Kind::kText:
      for (size_t at = 0; at < value.text->size();) {
        TRY(heap.check());
        const std::string_view rest = std::string_view(value.as_string()).substr(at);
        const size_t bytes = first_utf8_character(rest).bytes;
        items.push_back(heap.text(value.text->part(at, bytes)));
        at += bytes;
      }
      break;
    default:
      return jinja_error(fmt::format("'{}' object is not iterable", type_name(value)));
  }
  heap.charge_look(items.size() * sizeof(Value));
  TRY(heap.check());
  return items;
}

Result<int64_t> jinja_length(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return int64_t{0};
    case Kind::kText:
      return static_cast<int64_t>(count_code_points(value.as_string()));
    case Kind::kList:
      return static_cast<int64_t>(value.list->items.size());
    case Kind::kDict:
      return static_cast<int64_t>(value.dict->entries().size());
    default:
      return jinja_error(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

}  // namespace lockstep::jinja

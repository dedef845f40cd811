#include "chat/jinja/jinja_value.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/threads/work.h"

namespace lockstep {
namespace {

constexpr size_t kBytesOfAStep = 64;
constexpr size_t kBytesOfAPair = 64;  // an entry and its index slot, approximately

constexpr size_t kAbsent = static_cast<size_t>(-1);

bool equal_numbers(const JinjaValue& left, const JinjaValue& right) {
  if (left.is(JinjaKind::kFloat) || right.is(JinjaKind::kFloat)) {
    return left.as_double() == right.as_double();
  }
  return left.as_int() == right.as_int();
}

bool equal_lists(JinjaHeap& heap, const JinjaList& left, const JinjaList& right, int depth) {
  if (left.shape != right.shape || left.shape == JinjaShape::kGenerator) return &left == &right;
  return std::equal(left.items.begin(), left.items.end(), right.items.begin(), right.items.end(),
                    [&heap, depth](const JinjaValue& one, const JinjaValue& other) {
                      return jinja_equal(heap, one, other, depth + 1);
                    });
}

bool equal_dicts(JinjaHeap& heap, const JinjaDict& left, const JinjaDict& right, int depth) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const JinjaPair& entry) {
    const JinjaValue* other = right.find(entry.first);
    return other && jinja_equal(heap, entry.second, *other, depth + 1);
  });
}

}  // namespace

JinjaValue JinjaValue::boolean(bool value) {
  JinjaValue result;
  result.kind = JinjaKind::kBool;
  result.integer = 0;
  result.truth = value;
  return result;
}

JinjaValue JinjaValue::of(int64_t value) {
  JinjaValue result;
  result.kind = JinjaKind::kInt;
  result.integer = value;
  return result;
}

JinjaValue JinjaValue::of(double value) {
  JinjaValue result;
  result.kind = JinjaKind::kFloat;
  result.floating = value;
  return result;
}

JinjaValue JinjaValue::of(JinjaFunction value) {
  JinjaValue result;
  result.kind = JinjaKind::kFunction;
  result.function = value;
  return result;
}

JinjaValue JinjaValue::like(const JinjaValue& origin) const {
  JinjaValue result = *this;
  result.is_markup = origin.is_markup;
  return result;
}

bool JinjaValue::is_number() const {
  return kind == JinjaKind::kBool || kind == JinjaKind::kInt || kind == JinjaKind::kFloat;
}

int64_t JinjaValue::as_int() const {
  return kind == JinjaKind::kBool ? truth : integer;
}

double JinjaValue::as_double() const {
  return kind == JinjaKind::kFloat ? floating : static_cast<double>(as_int());
}

size_t JinjaDict::text_position(std::string_view key) const {
  const auto found = text_keys_.find(key);
  return found == text_keys_.end() ? kAbsent : found->second;
}

size_t JinjaDict::position(const JinjaValue& key) const {
  if (key.is(JinjaKind::kText)) return text_position(key.as_string());
  if (text_keys_.size() == entries_.size()) return kAbsent;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const JinjaValue& other = entries_[i].first;
    const bool numbers = other.is_number() && key.is_number();
    if (numbers ? equal_numbers(other, key)
                : other.is(JinjaKind::kNone) && key.is(JinjaKind::kNone)) {
      return i;
    }
  }
  return kAbsent;
}

const JinjaValue* JinjaDict::find(std::string_view key) const {
  const size_t at = text_position(key);
  return at == kAbsent ? nullptr : &entries_[at].second;
}

const JinjaValue* JinjaDict::find(const JinjaValue& key) const {
  const size_t at = position(key);
  return at == kAbsent ? nullptr : &entries_[at].second;
}

bool JinjaDict::replace(std::string_view key, const JinjaValue& value) {
  json_text_.clear();
  const size_t at = text_position(key);
  if (at != kAbsent) entries_[at].second = value;
  return at != kAbsent;
}

void JinjaDict::set(const JinjaValue& key, const JinjaValue& value) {
  json_text_.clear();
  const size_t at = position(key);
  if (at != kAbsent) {
    entries_[at].second = value;
    return;
  }
  if (key.is(JinjaKind::kText)) text_keys_.emplace(key.as_string(), entries_.size());
  entries_.emplace_back(key, value);
}

JinjaHeap::JinjaHeap(JinjaLimits limits)
    : bytes_left_(limits.memory_bytes), steps_left_(limits.steps) {}

void JinjaHeap::charge_bytes(size_t bytes) {
  bytes_left_ -= std::min(bytes, bytes_left_);
  charge_look(bytes);
}

void JinjaHeap::charge_look(size_t bytes) {
  steps_left_ -= static_cast<int64_t>(bytes / kBytesOfAStep);
}

Status JinjaHeap::check() const {
  if (bytes_left_ == 0) {
    return Error{ErrorCode::kExhausted, "it takes more memory than a chat template may"};
  }
  if (steps_left_ < 0) {
    return Error{ErrorCode::kExhausted, "it takes more steps than a chat template may"};
  }
  return Work::check();
}

JinjaValue JinjaHeap::text(MarkedText text) {
  charge_bytes(text.memory_bytes());
  JinjaValue value;
  value.kind = JinjaKind::kText;
  value.text = &texts_.emplace_back(std::move(text));
  return value;
}

JinjaValue JinjaHeap::text(std::string_view text, bool is_from_input) {
  return this->text(MarkedText(std::string(text), is_from_input));
}

JinjaValue JinjaHeap::list(std::vector<JinjaValue> items, JinjaShape shape) {
  charge_bytes(sizeof(JinjaList) + items.size() * sizeof(JinjaValue));
  JinjaValue value;
  value.kind = JinjaKind::kList;
  value.list = &lists_.emplace_back(JinjaList{shape, std::move(items)});
  return value;
}

JinjaValue JinjaHeap::dict() {
  charge_bytes(sizeof(JinjaDict) + kBytesOfAPair);
  JinjaValue value;
  value.kind = JinjaKind::kDict;
  value.dict = &dicts_.emplace_back();
  return value;
}

JinjaValue JinjaHeap::make_namespace() {
  JinjaValue value = dict();
  value.kind = JinjaKind::kNamespace;
  return value;
}

JinjaValue JinjaHeap::method(const JinjaValue& object, std::string_view name) {
  charge_bytes(sizeof(JinjaMethod));
  JinjaValue value;
  value.kind = JinjaKind::kMethod;
  value.method = &methods_.emplace_back(JinjaMethod{object, name});
  return value;
}

JinjaValue JinjaHeap::macro(const JinjaStatement* definition, JinjaScope* scope) {
  charge_bytes(sizeof(JinjaMacro));
  JinjaValue value;
  value.kind = JinjaKind::kMacro;
  value.macro = &macros_.emplace_back(JinjaMacro{definition, scope});
  return value;
}

JinjaValue JinjaHeap::undefined(std::string_view explanation) {
  JinjaValue value = text(explanation);
  value.kind = JinjaKind::kUndefined;
  return value;
}

bool is_true(const JinjaValue& value) {
  switch (value.kind) {
    case JinjaKind::kUndefined:
    case JinjaKind::kNone:
      return false;
    case JinjaKind::kBool:
      return value.truth;
    case JinjaKind::kInt:
      return value.integer != 0;
    case JinjaKind::kFloat:
      return value.floating != 0;
    case JinjaKind::kText:
      return !value.text->empty();
    case JinjaKind::kList:
      return value.list->shape == JinjaShape::kGenerator || !value.list->items.empty();
    case JinjaKind::kDict:
      return !value.dict->entries().empty();
    default:
      return true;
  }
}

std::string_view type_name(const JinjaValue& value) {
  switch (value.kind) {
    case JinjaKind::kUndefined:
      return "Undefined";
    case JinjaKind::kNone:
      return "NoneType";
    case JinjaKind::kBool:
      return "bool";
    case JinjaKind::kInt:
      return "int";
    case JinjaKind::kFloat:
      return "float";
    case JinjaKind::kText:
      return "str";
    case JinjaKind::kList:
      if (value.list->shape == JinjaShape::kList) return "list";
      return value.list->shape == JinjaShape::kTuple ? "tuple" : "generator";
    case JinjaKind::kDict:
      return "dict";
    case JinjaKind::kNamespace:
      return "Namespace";
    case JinjaKind::kLoop:
      return "LoopContext";
    case JinjaKind::kMacro:
      return "Macro";
    case JinjaKind::kMethod:
      return "builtin_function_or_method";
    case JinjaKind::kFunction:
      break;
  }
  return "function";
}

bool is_dict_key(const JinjaValue& value) {
  return value.is(JinjaKind::kText) || value.is(JinjaKind::kNone) || value.is_number();
}

bool jinja_equal(JinjaHeap& heap, const JinjaValue& left, const JinjaValue& right, int depth) {
  heap.charge_steps(1);
  if (depth > kJinjaValueDepthMax || !heap.check().ok()) return false;
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case JinjaKind::kUndefined:
    case JinjaKind::kNone:
      return true;
    case JinjaKind::kText:
      if (left.text->size() == right.text->size()) heap.charge_look(left.text->size());
      return left.as_string() == right.as_string();
    case JinjaKind::kList:
      return equal_lists(heap, *left.list, *right.list, depth);
    case JinjaKind::kDict:
      return equal_dicts(heap, *left.dict, *right.dict, depth);
    case JinjaKind::kFunction:
      return left.function == right.function;
    default:
      return left.loop == right.loop;  // the same object, of any type
  }
}

Result<bool> jinja_less(JinjaHeap& heap, const JinjaValue& left, const JinjaValue& right,
                        int depth) {
  heap.charge_steps(1);
  if (left.is_number() && right.is_number()) {
    if (left.is(JinjaKind::kFloat) || right.is(JinjaKind::kFloat)) {
      return left.as_double() < right.as_double();
    }
    return left.as_int() < right.as_int();
  }
  // The order of UTF-8 bytes is that of code points.
  if (left.is(JinjaKind::kText) && right.is(JinjaKind::kText)) {
    heap.charge_look(std::min(left.text->size(), right.text->size()));
    return left.as_string() < right.as_string();
  }
  const bool lists = left.is(JinjaKind::kList) && right.is(JinjaKind::kList) &&
                     left.list->shape == right.list->shape &&
                     left.list->shape != JinjaShape::kGenerator;
  if (!lists || depth > kJinjaValueDepthMax) {
    if (left.is(JinjaKind::kUndefined)) return jinja_error(left.as_string());
    if (right.is(JinjaKind::kUndefined)) return jinja_error(right.as_string());
    return jinja_error(fmt::format("'<' not supported between instances of '{}' and '{}'",
                                   type_name(left), type_name(right)));
  }
  const auto& one = left.list->items;
  const auto& other = right.list->items;
  for (size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    if (!jinja_equal(heap, one[i], other[i], depth + 1)) {
      return jinja_less(heap, one[i], other[i], depth + 1);
    }
  }
  return one.size() < other.size();
}

Error jinja_error(std::string message) {
  return {ErrorCode::kUnsupported, std::move(message)};
}

}  // namespace lockstep

#include "chat/jinja/jinja_value.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/threads/work.h"

namespace lockstep::jinja {
namespace {

constexpr size_t kBytesOfAStep = 64;
constexpr size_t kBytesOfAPair = 64;  // an entry and its index slot, approximately

constexpr size_t kAbsent = static_cast<size_t>(-1);

bool equal_numbers(const Value& left, const Value& right) {
  if (left.is(Kind::kFloat) || right.is(Kind::kFloat)) {
    return left.as_double() == right.as_double();
  }
  return left.as_int() == right.as_int();
}

bool equal_lists(Heap& heap, const List& left, const List& right, int depth) {
  if (left.shape != right.shape || left.shape == Shape::kGenerator) return &left == &right;
  return std::equal(left.items.begin(), left.items.end(), right.items.begin(), right.items.end(),
                    [&heap, depth](const Value& one, const Value& other) {
                      return jinja_equal(heap, one, other, depth + 1);
                    });
}

bool equal_dicts(Heap& heap, const Dict& left, const Dict& right, int depth) {
  if (left.entries().size() != right.entries().size()) return false;
  return std::all_of(left.entries().begin(), left.entries().end(), [&](const Pair& entry) {
    const Value* other = right.find(entry.first);
    return other && jinja_equal(heap, entry.second, *other, depth + 1);
  });
}

}  // namespace

Value Value::boolean(bool value) {
  Value result;
  result.kind = Kind::kBool;
  result.integer = 0;
  result.truth = value;
  return result;
}

Value Value::of(int64_t value) {
  Value result;
  result.kind = Kind::kInt;
  result.integer = value;
  return result;
}

Value Value::of(double value) {
  Value result;
  result.kind = Kind::kFloat;
  result.floating = value;
  return result;
}

Value Value::of(Function value) {
  Value result;
  result.kind = Kind::kFunction;
  result.function = value;
  return result;
}

Value Value::like(const Value& origin) const {
  Value result = *this;
  result.is_markup = origin.is_markup;
  return result;
}

bool Value::is_number() const {
  return kind == Kind::kBool || kind == Kind::kInt || kind == Kind::kFloat;
}

int64_t Value::as_int() const {
  return kind == Kind::kBool ? truth : integer;
}

double Value::as_double() const {
  return kind == Kind::kFloat ? floating : static_cast<double>(as_int());
}

size_t Dict::text_position(std::string_view key) const {
  const auto found = text_keys_.find(key);
  return found == text_keys_.end() ? kAbsent : found->second;
}

size_t Dict::position(const Value& key) const {
  if (key.is(Kind::kText)) return text_position(key.as_string());
  if (text_keys_.size() == entries_.size()) return kAbsent;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Value& other = entries_[i].first;
    const bool numbers = other.is_number() && key.is_number();
    if (numbers ? equal_numbers(other, key) : other.is(Kind::kNone) && key.is(Kind::kNone)) {
      return i;
    }
  }
  return kAbsent;
}

const Value* Dict::find(std::string_view key) const {
  const size_t at = text_position(key);
  return at == kAbsent ? nullptr : &entries_[at].second;
}

const Value* Dict::find(const Value& key) const {
  const size_t at = position(key);
  return at == kAbsent ? nullptr : &entries_[at].second;
}

bool Dict::replace(std::string_view key, const Value& value) {
  json_text_.clear();
  const size_t at = text_position(key);
  if (at != kAbsent) entries_[at].second = value;
  return at != kAbsent;
}

void Dict::set(const Value& key, const Value& value) {
  json_text_.clear();
  const size_t at = position(key);
  if (at != kAbsent) {
    entries_[at].second = value;
    return;
  }
  if (key.is(Kind::kText)) text_keys_.emplace(key.as_string(), entries_.size());
  entries_.emplace_back(key, value);
}

Heap::Heap(Limits limits) : bytes_left_(limits.memory_bytes), steps_left_(limits.steps) {}

void Heap::charge_bytes(size_t bytes) {
  bytes_left_ -= std::min(bytes, bytes_left_);
  charge_look(bytes);
}

void Heap::charge_look(size_t bytes) {
  steps_left_ -= static_cast<int64_t>(bytes / kBytesOfAStep);
}

Status Heap::check() const {
  if (bytes_left_ == 0) {
    return Error{ErrorCode::kExhausted, "it takes more memory than a chat template may"};
  }
  if (steps_left_ < 0) {
    return Error{ErrorCode::kExhausted, "it takes more steps than a chat template may"};
  }
  return Work::check();
}

Value Heap::text(MarkedText text) {
  charge_bytes(text.memory_bytes());
  Value value;
  value.kind = Kind::kText;
  value.text = &texts_.emplace_back(std::move(text));
  return value;
}

Value Heap::text(std::string_view text, bool is_from_input) {
  return this->text(MarkedText(std::string(text), is_from_input));
}

Value Heap::list(std::vector<Value> items, Shape shape) {
  charge_bytes(sizeof(List) + items.size() * sizeof(Value));
  Value value;
  value.kind = Kind::kList;
  value.list = &lists_.emplace_back(List{shape, std::move(items)});
  return value;
}

Value Heap::dict() {
  charge_bytes(sizeof(Dict) + kBytesOfAPair);
  Value value;
  value.kind = Kind::kDict;
  value.dict = &dicts_.emplace_back();
  return value;
}

Value Heap::make_namespace() {
  Value value = dict();
  value.kind = Kind::kNamespace;
  return value;
}

Value Heap::method(const Value& object, std::string_view name) {
  charge_bytes(sizeof(Method));
  Value value;
  value.kind = Kind::kMethod;
  value.method = &methods_.emplace_back(Method{object, name});
  return value;
}

Value Heap::macro(const Statement* definition, Scope* scope) {
  charge_bytes(sizeof(Macro));
  Value value;
  value.kind = Kind::kMacro;
  value.macro = &macros_.emplace_back(Macro{definition, scope});
  return value;
}

Value Heap::undefined(std::string_view explanation) {
  Value value = text(explanation);
  value.kind = Kind::kUndefined;
  return value;
}

bool is_true(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.truth;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.floating != 0;
    case Kind::kText:
      return !value.text->empty();
    case Kind::kList:
      return value.list->shape == Shape::kGenerator || !value.list->items.empty();
    case Kind::kDict:
      return !value.dict->entries().empty();
    default:
      return true;
  }
}

std::string_view type_name(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return "str";
    case Kind::kList:
      if (value.list->shape == Shape::kList) return "list";
      return value.list->shape == Shape::kTuple ? "tuple" : "generator";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kMacro:
      return "Macro";
    case Kind::kMethod:
      return "builtin_function_or_method";
    case Kind::kFunction:
      break;
  }
  return "function";
}

bool is_dict_key(const Value& value) {
  return value.is(Kind::kText) || value.is(Kind::kNone) || value.is_number();
}

bool jinja_equal(Heap& heap, const Value& left, const Value& right, int depth) {
  heap.charge_steps(1);
  if (depth > kValueDepthMax || !heap.check().ok()) return false;
  if (left.is_number() && right.is_number()) return equal_numbers(left, right);
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      if (left.text->size() == right.text->size()) heap.charge_look(left.text->size());
      return left.as_string() == right.as_string();
    case Kind::kList:
      return equal_lists(heap, *left.list, *right.list, depth);
    case Kind::kDict:
      return equal_dicts(heap, *left.dict, *right.dict, depth);
    case Kind::kFunction:
      return left.function == right.function;
    default:
      return left.loop == right.loop;  // the same object, of any type
  }
}

Result<bool> jinja_less(Heap& heap, const Value& left, const Value& right, int depth) {
  heap.charge_steps(1);
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::kFloat) || right.is(Kind::kFloat)) {
      return left.as_double() < right.as_double();
    }
    return left.as_int() < right.as_int();
  }
  // The order of UTF-8 bytes is that of code points.
  if (left.is(Kind::kText) && right.is(Kind::kText)) {
    heap.charge_look(std::min(left.text->size(), right.text->size()));
    return left.as_string() < right.as_string();
  }
  const bool lists = left.is(Kind::kList) && right.is(Kind::kList) &&
                     left.list->shape == right.list->shape && left.list->shape != Shape::kGenerator;
  if (!lists || depth > kValueDepthMax) {
    if (left.is(Kind::kUndefined)) return jinja_error(left.as_string());
    if (right.is(Kind::kUndefined)) return jinja_error(right.as_string());
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

}  // namespace lockstep::jinja

// Numbers, +, * and comparisons.
#include <fmt/core.h>

#include <cmath>

#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_text.h"

namespace lockstep::jinja {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

Error wrong_operands(Arithmetic operation, const Value& left, const Value& right) {
  return jinja_error(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'",
                                 kSigns[static_cast<size_t>(operation)], type_name(left),
                                 type_name(right)));
}

Error overflow() {
  return jinja_error("an integer has more than 64 bits");
}
Error division_by_zero() {
  return jinja_error("division by zero");
}

Result<Value> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return division_by_zero();
    return Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return Value::of(result);
}

// Python rounds towards minus infinity, so a remainder has the divisor's sign.
Result<Value> integer_division(Arithmetic operation, int64_t left, int64_t right) {
  if (right == 0) return division_by_zero();
  if (right == -1) {  // the smallest integer has no positive counterpart
    if (operation == Arithmetic::kModulo) return Value::of(int64_t{0});
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, left, &negated)) return overflow();
    return Value::of(negated);
  }
  const bool adjust = left % right != 0 && (left < 0) != (right < 0);
  if (operation == Arithmetic::kFloor) return Value::of(left / right - (adjust ? 1 : 0));
  return Value::of(left % right + (adjust ? right : 0));
}

Result<Value> integer_arithmetic(Arithmetic operation, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case Arithmetic::kAdd:
      overflows = __builtin_add_overflow(left, right, &result);
      break;
    case Arithmetic::kSubtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      break;
    case Arithmetic::kMultiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      break;
    case Arithmetic::kDivide:
      if (right == 0) return division_by_zero();
      return Value::of(static_cast<double>(left) / static_cast<double>(right));
    case Arithmetic::kFloor:
    case Arithmetic::kModulo:
      return integer_division(operation, left, right);
    case Arithmetic::kPower:
      return integer_power(left, right);
  }
  if (overflows) return overflow();
  return Value::of(result);
}

Result<Value> float_arithmetic(Arithmetic operation, double left, double right) {
  switch (operation) {
    case Arithmetic::kAdd:
      return Value::of(left + right);
    case Arithmetic::kSubtract:
      return Value::of(left - right);
    case Arithmetic::kMultiply:
      return Value::of(left * right);
    case Arithmetic::kPower:
      return Value::of(std::pow(left, right));
    default:
      break;
  }
  if (right == 0) return division_by_zero();
  if (operation == Arithmetic::kDivide) return Value::of(left / right);
  double remainder = std::fmod(left, right);
  if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
  if (operation == Arithmetic::kModulo) return Value::of(remainder);
  return Value::of(std::floor(left / right));
}

Result<Value> concatenated(Heap& heap, const Value& left, const Value& right) {
  if (left.is(Kind::kText)) {
    if (!right.is(Kind::kText)) {
      return jinja_error(
          fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
    }
    // As in markupsafe, if only one side is marked "safe".
    MarkedText text =
        right.is_markup && !left.is_markup ? jinja_escaped(*left.text) : MarkedText(*left.text);
    text.append(left.is_markup && !right.is_markup ? jinja_escaped(*right.text) : *right.text);
    Value result = heap.text(std::move(text));
    result.is_markup = left.is_markup || right.is_markup;
    return result;
  }
  const bool same = right.is(Kind::kList) && left.list->shape == right.list->shape &&
                    left.list->shape != Shape::kGenerator;
  if (!same) {
    return jinja_error(fmt::format("can only concatenate {} (not \"{}\") to {}", type_name(left),
                                   type_name(right), type_name(left)));
  }
  std::vector<Value> items = left.list->items;
  items.insert(items.end(), right.list->items.begin(), right.list->items.end());
  return heap.list(std::move(items), left.list->shape);
}

Result<Value> repeated(Heap& heap, const Value& value, int64_t count) {
  const bool is_text = value.is(Kind::kText);
  const size_t bytes = is_text ? value.text->size() : value.list->items.size() * sizeof(Value);
  if (count > 0 && bytes > 0 && static_cast<uint64_t>(count) > heap.bytes_left() / bytes) {
    return Error{ErrorCode::kExhausted, "a repeated value takes more memory than a template may"};
  }
  MarkedText text;
  std::vector<Value> items;
  for (int64_t i = 0; i < count && bytes > 0; ++i) {
    if (is_text) {
      text.append(*value.text);
    } else {
      items.insert(items.end(), value.list->items.begin(), value.list->items.end());
    }
  }
  if (is_text) return heap.text(std::move(text)).like(value);
  return heap.list(std::move(items), value.list->shape);
}

bool is_sequence(const Value& value) {
  return value.is(Kind::kText) || (value.is(Kind::kList) && value.list->shape != Shape::kGenerator);
}

bool is_integer(const Value& value) {
  return value.is_number() && !value.is(Kind::kFloat);
}

}  // namespace

Result<Value> jinja_arithmetic(Heap& heap, Arithmetic operation, const Value& left,
                               const Value& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is(Kind::kFloat) || right.is(Kind::kFloat)) {
      return float_arithmetic(operation, left.as_double(), right.as_double());
    }
    return integer_arithmetic(operation, left.as_int(), right.as_int());
  }
  if (left.is(Kind::kUndefined)) return jinja_error(left.as_string());
  if (right.is(Kind::kUndefined)) return jinja_error(right.as_string());
  if (operation == Arithmetic::kAdd && is_sequence(left)) {
    return concatenated(heap, left, right);
  }
  if (operation == Arithmetic::kMultiply) {
    if (is_sequence(left) && is_integer(right)) return repeated(heap, left, right.as_int());
    if (is_integer(left) && is_sequence(right)) return repeated(heap, right, left.as_int());
  }
  if (operation == Arithmetic::kModulo && left.is(Kind::kText)) {
    return jinja_format(heap, *left.text, right);
  }
  return wrong_operands(operation, left, right);
}

Result<Value> jinja_negate(const Value& value) {
  if (value.is(Kind::kFloat)) return Value::of(-value.floating);
  if (is_integer(value)) {
    return integer_arithmetic(Arithmetic::kSubtract, 0, value.as_int());
  }
  if (value.is(Kind::kUndefined)) return jinja_error(value.as_string());
  return jinja_error(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

Result<bool> jinja_compare(Heap& heap, Comparison comparison, const Value& left,
                           const Value& right) {
  switch (comparison) {
    case Comparison::kEqual:
      return jinja_equal(heap, left, right);
    case Comparison::kUnequal:
      return !jinja_equal(heap, left, right);
    case Comparison::kLess:
      return jinja_less(heap, left, right);
    case Comparison::kGreater:
      return jinja_less(heap, right, left);
    case Comparison::kLessEqual:
      return TRY(jinja_less(heap, left, right)) || jinja_equal(heap, left, right);
    case Comparison::kGreaterEqual:
      return TRY(jinja_less(heap, right, left)) || jinja_equal(heap, left, right);
    case Comparison::kIn:
      return jinja_contains(heap, right, left);
    case Comparison::kNotIn:
      break;
  }
  return !TRY(jinja_contains(heap, right, left));
}

}  // namespace lockstep::jinja

// Numbers, +, * and comparisons.
#include <fmt/core.h>

#include <cmath>

#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_text.h"

namespace lockstep {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "** or pow()"};

Error wrong_operands(JinjaArithmetic operation, const JinjaValue& left, const JinjaValue& right) {
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

Result<JinjaValue> integer_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return division_by_zero();
    return JinjaValue::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow();
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return overflow();
  }
  return JinjaValue::of(result);
}

// Python rounds towards minus infinity, so a remainder has the divisor's sign.
Result<JinjaValue> integer_division(JinjaArithmetic operation, int64_t left, int64_t right) {
  if (right == 0) return division_by_zero();
  if (right == -1) {  // the smallest integer has no positive counterpart
    if (operation == JinjaArithmetic::kModulo) return JinjaValue::of(int64_t{0});
    int64_t negated = 0;
    if (__builtin_sub_overflow(int64_t{0}, left, &negated)) return overflow();
    return JinjaValue::of(negated);
  }
  const bool adjust = left % right != 0 && (left < 0) != (right < 0);
  if (operation == JinjaArithmetic::kFloor) return JinjaValue::of(left / right - (adjust ? 1 : 0));
  return JinjaValue::of(left % right + (adjust ? right : 0));
}

Result<JinjaValue> integer_arithmetic(JinjaArithmetic operation, int64_t left, int64_t right) {
  int64_t result = 0;
  bool overflows = false;
  switch (operation) {
    case JinjaArithmetic::kAdd:
      overflows = __builtin_add_overflow(left, right, &result);
      break;
    case JinjaArithmetic::kSubtract:
      overflows = __builtin_sub_overflow(left, right, &result);
      break;
    case JinjaArithmetic::kMultiply:
      overflows = __builtin_mul_overflow(left, right, &result);
      break;
    case JinjaArithmetic::kDivide:
      if (right == 0) return division_by_zero();
      return JinjaValue::of(static_cast<double>(left) / static_cast<double>(right));
    case JinjaArithmetic::kFloor:
    case JinjaArithmetic::kModulo:
      return integer_division(operation, left, right);
    case JinjaArithmetic::kPower:
      return integer_power(left, right);
  }
  if (overflows) return overflow();
  return JinjaValue::of(result);
}

Result<JinjaValue> float_arithmetic(JinjaArithmetic operation, double left, double right) {
  switch (operation) {
    case JinjaArithmetic::kAdd:
      return JinjaValue::of(left + right);
    case JinjaArithmetic::kSubtract:
      return JinjaValue::of(left - right);
    case JinjaArithmetic::kMultiply:
      return JinjaValue::of(left * right);
    case JinjaArithmetic::kPower:
      return JinjaValue::of(std::pow(left, right));
    default:
      break;
  }
  if (right == 0) return division_by_zero();
  if (operation == JinjaArithmetic::kDivide) return JinjaValue::of(left / right);
  double remainder = std::fmod(left, right);
  if (remainder != 0 && (remainder < 0) != (right < 0)) remainder += right;
  if (operation == JinjaArithmetic::kModulo) return JinjaValue::of(remainder);
  return JinjaValue::of(std::floor(left / right));
}

Result<JinjaValue> concatenated(JinjaHeap& heap, const JinjaValue& left, const JinjaValue& right) {
  if (left.is(JinjaKind::kText)) {
    if (!right.is(JinjaKind::kText)) {
      return jinja_error(
          fmt::format("can only concatenate str (not \"{}\") to str", type_name(right)));
    }
    // As in markupsafe, if only one side is marked "safe".
    MarkedText text =
        right.is_markup && !left.is_markup ? jinja_escaped(*left.text) : MarkedText(*left.text);
    text.append(left.is_markup && !right.is_markup ? jinja_escaped(*right.text) : *right.text);
    JinjaValue result = heap.text(std::move(text));
    result.is_markup = left.is_markup || right.is_markup;
    return result;
  }
  const bool same = right.is(JinjaKind::kList) && left.list->shape == right.list->shape &&
                    left.list->shape != JinjaShape::kGenerator;
  if (!same) {
    return jinja_error(fmt::format("can only concatenate {} (not \"{}\") to {}", type_name(left),
                                   type_name(right), type_name(left)));
  }
  std::vector<JinjaValue> items = left.list->items;
  items.insert(items.end(), right.list->items.begin(), right.list->items.end());
  return heap.list(std::move(items), left.list->shape);
}

Result<JinjaValue> repeated(JinjaHeap& heap, const JinjaValue& value, int64_t count) {
  const bool is_text = value.is(JinjaKind::kText);
  const size_t bytes = is_text ? value.text->size() : value.list->items.size() * sizeof(JinjaValue);
  if (count > 0 && bytes > 0 && static_cast<uint64_t>(count) > heap.bytes_left() / bytes) {
    return Error{ErrorCode::kExhausted, "a repeated value takes more memory than a template may"};
  }
  MarkedText text;
  std::vector<JinjaValue> items;
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

bool is_sequence(const JinjaValue& value) {
  return value.is(JinjaKind::kText) ||
         (value.is(JinjaKind::kList) && value.list->shape != JinjaShape::kGenerator);
}

bool is_integer(const JinjaValue& value) {
  return value.is_number() && !value.is(JinjaKind::kFloat);
}

}  // namespace

Result<JinjaValue> jinja_arithmetic(JinjaHeap& heap, JinjaArithmetic operation,
                                    const JinjaValue& left, const JinjaValue& right) {
  if (left.is_number() && right.is_number()) {
    if (left.is(JinjaKind::kFloat) || right.is(JinjaKind::kFloat)) {
      return float_arithmetic(operation, left.as_double(), right.as_double());
    }
    return integer_arithmetic(operation, left.as_int(), right.as_int());
  }
  if (left.is(JinjaKind::kUndefined)) return jinja_error(left.as_string());
  if (right.is(JinjaKind::kUndefined)) return jinja_error(right.as_string());
  if (operation == JinjaArithmetic::kAdd && is_sequence(left)) {
    return concatenated(heap, left, right);
  }
  if (operation == JinjaArithmetic::kMultiply) {
    if (is_sequence(left) && is_integer(right)) return repeated(heap, left, right.as_int());
    if (is_integer(left) && is_sequence(right)) return repeated(heap, right, left.as_int());
  }
  if (operation == JinjaArithmetic::kModulo && left.is(JinjaKind::kText)) {
    return jinja_format(heap, *left.text, right);
  }
  return wrong_operands(operation, left, right);
}

Result<JinjaValue> jinja_negate(const JinjaValue& value) {
  if (value.is(JinjaKind::kFloat)) return JinjaValue::of(-value.floating);
  if (is_integer(value)) {
    return integer_arithmetic(JinjaArithmetic::kSubtract, 0, value.as_int());
  }
  if (value.is(JinjaKind::kUndefined)) return jinja_error(value.as_string());
  return jinja_error(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
}

Result<bool> jinja_compare(JinjaHeap& heap, JinjaComparison comparison, const JinjaValue& left,
                           const JinjaValue& right) {
  switch (comparison) {
    case JinjaComparison::kEqual:
      return jinja_equal(heap, left, right);
    case JinjaComparison::kUnequal:
      return !jinja_equal(heap, left, right);
    case JinjaComparison::kLess:
      return jinja_less(heap, left, right);
    case JinjaComparison::kGreater:
      return jinja_less(heap, right, left);
    case JinjaComparison::kLessEqual:
      return TRY(jinja_less(heap, left, right)) || jinja_equal(heap, left, right);
    case JinjaComparison::kGreaterEqual:
      return TRY(jinja_less(heap, right, left)) || jinja_equal(heap, left, right);
    case JinjaComparison::kIn:
      return jinja_contains(heap, right, left);
    case JinjaComparison::kNotIn:
      break;
  }
  return !TRY(jinja_contains(heap, right, left));
}

}  // namespace lockstep

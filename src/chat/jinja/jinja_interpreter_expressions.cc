#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "chat/jinja/jinja_interpreter.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"

namespace lockstep::jinja {
namespace {

Result<std::optional<int64_t>> slice_bound(const Value& value) {
  if (value.is(Kind::kNone)) return std::optional<int64_t>();
  if (value.is(Kind::kUndefined)) return jinja_error(value.as_string());
  if (value.is(Kind::kInt) || value.is(Kind::kBool)) {
    return std::optional(value.as_int());
  }
  return jinja_error("slice indices must be integers or None");
}

}  // namespace

Result<Value> Interpreter::evaluate(const Expression& expression) {
  const DepthGuard depth(*this);
  line_ = expression.line;
  TRY(depth.check());
  switch (expression.kind) {
    case ExpressionKind::kNone:
      return Value();
    case ExpressionKind::kBool:
      return Value::boolean(expression.integer != 0);
    case ExpressionKind::kInt:
      return Value::of(expression.integer);
    case ExpressionKind::kFloat:
      return Value::of(expression.floating);
    case ExpressionKind::kText: {
      Value value;
      value.kind = Kind::kText;
      value.text = &expression.text;
      return value;
    }
    case ExpressionKind::kName:
      return evaluate_name(expression);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return evaluate_items(expression);
    case ExpressionKind::kDict:
      return evaluate_dict(expression);
    case ExpressionKind::kAttribute:
    case ExpressionKind::kSubscript:
      return evaluate_access(expression);
    case ExpressionKind::kSlice:
      return evaluate_slice(expression);
    case ExpressionKind::kCall:
      return evaluate_call(expression);
    case ExpressionKind::kFilter:
      return evaluate_filter(expression, nullptr);
    case ExpressionKind::kTest:
      return evaluate_test(expression);
    case ExpressionKind::kNot:
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
      return evaluate_logic(expression);
    case ExpressionKind::kConcatenate:
      return evaluate_concatenation(expression);
    case ExpressionKind::kNegate:
    case ExpressionKind::kPlus:
    case ExpressionKind::kArithmetic:
      return evaluate_operation(expression);
    case ExpressionKind::kCompare:
      return evaluate_comparison(expression);
    case ExpressionKind::kConditional:
      break;
  }
  return evaluate_conditional(expression);
}

Result<Value> Interpreter::evaluate_name(const Expression& expression) {
  if (const Value* value = find_variable(expression.name)) return *value;
  return heap_.undefined(fmt::format("'{}' is undefined", expression.text.text()));
}

Result<Value> Interpreter::evaluate_items(const Expression& expression) {
  std::vector<Value> items;
  for (const Expression* child : expression.children) {
    items.push_back(TRY(evaluate(*child)));
  }
  return heap_.list(std::move(items),
                    expression.kind == ExpressionKind::kTuple ? Shape::kTuple : Shape::kList);
}

Result<Value> Interpreter::evaluate_dict(const Expression& expression) {
  const Value dict = heap_.dict();
  for (size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    const Value key = TRY(evaluate(*expression.children[i]));
    if (!is_dict_key(key)) {
      return jinja_error(fmt::format("a {} cannot be the key of a dict", type_name(key)));
    }
    heap_.charge_bytes(sizeof(Pair) * 2);
    dict.dict->set(key, TRY(evaluate(*expression.children[i + 1])));
  }
  return dict;
}

Result<Value> Interpreter::evaluate_access(const Expression& expression) {
  const Value object = TRY(evaluate(*expression.children[0]));
  if (expression.kind == ExpressionKind::kAttribute) {
    return jinja_attribute(heap_, object, expression.text.text());
  }
  return jinja_subscript(heap_, object, TRY(evaluate(*expression.children[1])));
}

Result<Value> Interpreter::evaluate_slice(const Expression& expression) {
  const Value object = TRY(evaluate(*expression.children[0]));
  std::optional<int64_t> bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    const Expression* bound = expression.children[i + 1];
    if (bound) bounds[i] = TRY(slice_bound(TRY(evaluate(*bound))));
  }
  return jinja_slice(heap_, object, {bounds[0], bounds[1], bounds[2].value_or(1)});
}

Result<Value> Interpreter::evaluate_logic(const Expression& expression) {
  if (expression.kind == ExpressionKind::kNot) {
    return Value::boolean(!is_true(TRY(evaluate(*expression.children[0]))));
  }
  Value value;
  for (const Expression* child : expression.children) {
    value = TRY(evaluate(*child));
    if (is_true(value) == (expression.kind == ExpressionKind::kOr)) break;
  }
  return value;
}

Result<Value> Interpreter::evaluate_concatenation(const Expression& expression) {
  LimitedText text(std::min(heap_.bytes_left(), kPromptBytesMax));
  for (const Expression* child : expression.children) {
    const Value value = TRY(evaluate(*child));
    if (value.is(Kind::kText)) {
      text.append(*value.text);
    } else {
      text.append(TRY(jinja_str(heap_, value)));
    }
  }
  if (text.overflowed()) return Error{ErrorCode::kExhausted, "a text is too long"};
  return heap_.text(std::move(text.text()));
}

Result<Value> Interpreter::evaluate_operation(const Expression& expression) {
  const Value left = TRY(evaluate(*expression.children[0]));
  if (expression.kind == ExpressionKind::kNegate) return jinja_negate(left);
  if (expression.kind == ExpressionKind::kPlus) return jinja_negate(TRY(jinja_negate(left)));
  const Value right = TRY(evaluate(*expression.children[1]));
  line_ = expression.line;
  return jinja_arithmetic(heap_, expression.operation, left, right);
}

Result<Value> Interpreter::evaluate_comparison(const Expression& expression) {
  Value left = TRY(evaluate(*expression.children[0]));
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    const Value right = TRY(evaluate(*expression.children[i + 1]));
    line_ = expression.line;
    if (!TRY(jinja_compare(heap_, expression.comparisons[i], left, right))) {
      return Value::boolean(false);
    }
    left = right;
  }
  return Value::boolean(true);
}

Result<Value> Interpreter::evaluate_conditional(const Expression& expression) {
  if (is_true(TRY(evaluate(*expression.children[1])))) return evaluate(*expression.children[0]);
  if (expression.children[2]) return evaluate(*expression.children[2]);
  return heap_.undefined(
      "the inline if-expression evaluated to false and no else section was defined");
}

Result<Arguments> Interpreter::evaluate_arguments(const Expression& expression) {
  Arguments arguments;
  for (size_t i = 1; i < expression.children.size(); ++i) {
    arguments.positional.push_back(TRY(evaluate(*expression.children[i])));
  }
  for (const auto& keyword : expression.keywords) {
    arguments.keywords.emplace_back(keyword.first, TRY(evaluate(*keyword.second)));
  }
  return arguments;
}

Result<Value> Interpreter::evaluate_test(const Expression& expression) {
  const Value subject = TRY(evaluate(*expression.children[0]));
  const Arguments arguments = TRY(evaluate_arguments(expression));
  return Value::boolean(TRY(call_test(heap_, expression.text.text(), subject, arguments)));
}

Result<Value> Interpreter::evaluate_filter(const Expression& expression, const Value* subject) {
  const DepthGuard depth(*this);
  TRY(depth.check());
  const Expression* inner = expression.children[0];
  Value value;
  if (!inner) {
    LOCKSTEP_CHECK(subject);
    value = *subject;
  } else if (subject && inner->kind == ExpressionKind::kFilter) {
    value = TRY(evaluate_filter(*inner, subject));
  } else {
    value = TRY(evaluate(*inner));
  }
  const Arguments arguments = TRY(evaluate_arguments(expression));
  line_ = expression.line;
  return call_filter(heap_, expression.text.text(), value, arguments);
}

Result<Value> Interpreter::evaluate_call(const Expression& expression) {
  const Value callable = TRY(evaluate(*expression.children[0]));
  const Arguments arguments = TRY(evaluate_arguments(expression));
  line_ = expression.line;
  return call(callable, arguments);
}

}  // namespace lockstep::jinja

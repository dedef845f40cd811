#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "chat/jinja/jinja_interpreter.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"

namespace lockstep {
namespace {

using ExpressionKind = JinjaExpressionKind;

Result<std::optional<int64_t>> slice_bound(const JinjaValue& value) {
  if (value.is(JinjaKind::kNone)) return std::optional<int64_t>();
  if (value.is(JinjaKind::kUndefined)) return jinja_error(value.as_string());
  if (value.is(JinjaKind::kInt) || value.is(JinjaKind::kBool)) {
    return std::optional(value.as_int());
  }
  return jinja_error("slice indices must be integers or None");
}

}  // namespace

Result<JinjaValue> JinjaInterpreter::evaluate(const JinjaExpression& expression) {
  const DepthGuard depth(*this);
  line_ = expression.line;
  TRY(depth.check());
  switch (expression.kind) {
    case ExpressionKind::kNone:
      return JinjaValue();
    case ExpressionKind::kBool:
      return JinjaValue::boolean(expression.integer != 0);
    case ExpressionKind::kInt:
      return JinjaValue::of(expression.integer);
    case ExpressionKind::kFloat:
      return JinjaValue::of(expression.floating);
    case ExpressionKind::kText: {
      JinjaValue value;
      value.kind = JinjaKind::kText;
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

Result<JinjaValue> JinjaInterpreter::evaluate_name(const JinjaExpression& expression) {
  if (const JinjaValue* value = find_variable(expression.name)) return *value;
  return heap_.undefined(fmt::format("'{}' is undefined", expression.text.text()));
}

Result<JinjaValue> JinjaInterpreter::evaluate_items(const JinjaExpression& expression) {
  std::vector<JinjaValue> items;
  for (const JinjaExpression* child : expression.children) {
    items.push_back(TRY(evaluate(*child)));
  }
  return heap_.list(std::move(items), expression.kind == ExpressionKind::kTuple
                                          ? JinjaShape::kTuple
                                          : JinjaShape::kList);
}

Result<JinjaValue> JinjaInterpreter::evaluate_dict(const JinjaExpression& expression) {
  const JinjaValue dict = heap_.dict();
  for (size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    const JinjaValue key = TRY(evaluate(*expression.children[i]));
    if (!is_dict_key(key)) {
      return jinja_error(fmt::format("a {} cannot be the key of a dict", type_name(key)));
    }
    heap_.charge_bytes(sizeof(JinjaPair) * 2);
    dict.dict->set(key, TRY(evaluate(*expression.children[i + 1])));
  }
  return dict;
}

Result<JinjaValue> JinjaInterpreter::evaluate_access(const JinjaExpression& expression) {
  const JinjaValue object = TRY(evaluate(*expression.children[0]));
  if (expression.kind == ExpressionKind::kAttribute) {
    return jinja_attribute(heap_, object, expression.text.text());
  }
  return jinja_subscript(heap_, object, TRY(evaluate(*expression.children[1])));
}

Result<JinjaValue> JinjaInterpreter::evaluate_slice(const JinjaExpression& expression) {
  const JinjaValue object = TRY(evaluate(*expression.children[0]));
  std::optional<int64_t> bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    const JinjaExpression* bound = expression.children[i + 1];
    if (bound) bounds[i] = TRY(slice_bound(TRY(evaluate(*bound))));
  }
  return jinja_slice(heap_, object, {bounds[0], bounds[1], bounds[2].value_or(1)});
}

Result<JinjaValue> JinjaInterpreter::evaluate_logic(const JinjaExpression& expression) {
  if (expression.kind == ExpressionKind::kNot) {
    return JinjaValue::boolean(!is_true(TRY(evaluate(*expression.children[0]))));
  }
  JinjaValue value;
  for (const JinjaExpression* child : expression.children) {
    value = TRY(evaluate(*child));
    if (is_true(value) == (expression.kind == ExpressionKind::kOr)) break;
  }
  return value;
}

Result<JinjaValue> JinjaInterpreter::evaluate_concatenation(const JinjaExpression& expression) {
  LimitedText text(std::min(heap_.bytes_left(), kPromptBytesMax));
  for (const JinjaExpression* child : expression.children) {
    const JinjaValue value = TRY(evaluate(*child));
    if (value.is(JinjaKind::kText)) {
      text.append(*value.text);
    } else {
      text.append(TRY(jinja_str(heap_, value)));
    }
  }
  if (text.overflowed()) return Error{ErrorCode::kExhausted, "a text is too long"};
  return heap_.text(std::move(text.text()));
}

Result<JinjaValue> JinjaInterpreter::evaluate_operation(const JinjaExpression& expression) {
  const JinjaValue left = TRY(evaluate(*expression.children[0]));
  if (expression.kind == ExpressionKind::kNegate) return jinja_negate(left);
  if (expression.kind == ExpressionKind::kPlus) return jinja_negate(TRY(jinja_negate(left)));
  const JinjaValue right = TRY(evaluate(*expression.children[1]));
  line_ = expression.line;
  return jinja_arithmetic(heap_, expression.operation, left, right);
}

Result<JinjaValue> JinjaInterpreter::evaluate_comparison(const JinjaExpression& expression) {
  JinjaValue left = TRY(evaluate(*expression.children[0]));
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    const JinjaValue right = TRY(evaluate(*expression.children[i + 1]));
    line_ = expression.line;
    if (!TRY(jinja_compare(heap_, expression.comparisons[i], left, right))) {
      return JinjaValue::boolean(false);
    }
    left = right;
  }
  return JinjaValue::boolean(true);
}

Result<JinjaValue> JinjaInterpreter::evaluate_conditional(const JinjaExpression& expression) {
  if (is_true(TRY(evaluate(*expression.children[1])))) return evaluate(*expression.children[0]);
  if (expression.children[2]) return evaluate(*expression.children[2]);
  return heap_.undefined(
      "the inline if-expression evaluated to false and no else section was defined");
}

Result<JinjaArguments> JinjaInterpreter::evaluate_arguments(const JinjaExpression& expression) {
  JinjaArguments arguments;
  for (size_t i = 1; i < expression.children.size(); ++i) {
    arguments.positional.push_back(TRY(evaluate(*expression.children[i])));
  }
  for (const auto& keyword : expression.keywords) {
    arguments.keywords.emplace_back(keyword.first, TRY(evaluate(*keyword.second)));
  }
  return arguments;
}

Result<JinjaValue> JinjaInterpreter::evaluate_test(const JinjaExpression& expression) {
  const JinjaValue subject = TRY(evaluate(*expression.children[0]));
  const JinjaArguments arguments = TRY(evaluate_arguments(expression));
  return JinjaValue::boolean(TRY(call_test(heap_, expression.text.text(), subject, arguments)));
}

Result<JinjaValue> JinjaInterpreter::evaluate_filter(const JinjaExpression& expression,
                                                     const JinjaValue* subject) {
  const DepthGuard depth(*this);
  TRY(depth.check());
  const JinjaExpression* inner = expression.children[0];
  JinjaValue value;
  if (!inner) {
    LOCKSTEP_CHECK(subject);
    value = *subject;
  } else if (subject && inner->kind == ExpressionKind::kFilter) {
    value = TRY(evaluate_filter(*inner, subject));
  } else {
    value = TRY(evaluate(*inner));
  }
  const JinjaArguments arguments = TRY(evaluate_arguments(expression));
  line_ = expression.line;
  return call_filter(heap_, expression.text.text(), value, arguments);
}

Result<JinjaValue> JinjaInterpreter::evaluate_call(const JinjaExpression& expression) {
  const JinjaValue callable = TRY(evaluate(*expression.children[0]));
  const JinjaArguments arguments = TRY(evaluate_arguments(expression));
  line_ = expression.line;
  return call(callable, arguments);
}

}  // namespace lockstep

// Macros and the global functions of templates.
#include <fmt/core.h>

#include "base/utf8.h"
#include "chat/jinja/jinja_interpreter.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"

namespace lockstep::jinja {
namespace {

constexpr int64_t kRangeItemsMax = 100'000;
constexpr size_t kTimeBytesMax = 4096;

}  // namespace

Result<Value> Interpreter::call(const Value& callable, const Arguments& arguments) {
  switch (callable.kind) {
    case Kind::kMacro:
      return call_macro(*callable.macro, arguments);
    case Kind::kMethod:
      return call_method(heap_, *callable.method, arguments);
    case Kind::kFunction:
      return call_function(callable.function, arguments);
    case Kind::kUndefined:
      return jinja_error(callable.as_string());
    default:
      return jinja_error(fmt::format("'{}' object is not callable", type_name(callable)));
  }
}

Result<Value> Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Statement& definition = *macro.definition;
  const std::string& name = definition.text.text();
  if (arguments.positional.size() > definition.parameters.size()) {
    return jinja_error(fmt::format("macro '{}' takes not more than {} argument(s)", name,
                                   definition.parameters.size()));
  }
  // The body sees where the macro was defined, not where it is called.
  const ScopeGuard scope(*this, macro.scope);
  size_t keywords_used = 0;
  for (size_t i = 0; i < definition.parameters.size(); ++i) {
    const Parameter& parameter = definition.parameters[i];
    const std::string& keyword = program_.names[parameter.name];
    const Value* given = arguments.find(i, keyword);
    heap_.charge_steps(static_cast<int64_t>(arguments.keywords.size() / kLooksOfAStep));
    if (given && i >= arguments.positional.size()) ++keywords_used;
    if (given) {
      set_here(parameter.name, *given);
    } else if (parameter.initial) {
      set_here(parameter.name, TRY(evaluate(*parameter.initial)));
    } else {
      set_here(parameter.name,
               heap_.undefined(fmt::format("parameter '{}' was not provided", keyword)));
    }
  }
  if (keywords_used != arguments.keywords.size()) {
    return jinja_error(fmt::format("macro '{}' takes no keyword argument like that", name));
  }
  return captured(definition.body);
}

Result<Value> Interpreter::call_function(Function function, const Arguments& arguments) {
  switch (function) {
    case Function::kRaiseException: {
      const MarkedText message = TRY(jinja_str(heap_, *TRY(arguments.need(0, "message"))));
      return Error{ErrorCode::kInvalidArgument, message.text()};
    }
    case Function::kStrftimeNow:
      return format_now(arguments);
    case Function::kRange:
      return make_range(arguments);
    case Function::kNamespace: {
      Value space = TRY(make_namespace(arguments));
      space.kind = Kind::kNamespace;
      return space;
    }
    case Function::kDict:
      break;
  }
  return make_namespace(arguments);
}

Result<Value> Interpreter::make_namespace(const Arguments& arguments) {
  const Value result = heap_.dict();
  for (const Value& origin : arguments.positional) {
    if (!origin.is(Kind::kDict)) {
      return jinja_error(fmt::format("'{}' object is not a mapping", type_name(origin)));
    }
    heap_.charge_bytes(origin.dict->entries().size() * sizeof(Pair) * 2);
    for (const Pair& entry : origin.dict->entries()) result.dict->set(entry.first, entry.second);
  }
  for (const auto& keyword : arguments.keywords) {
    result.dict->set(heap_.text(keyword.first), keyword.second);
  }
  return result;
}

Result<Value> Interpreter::make_range(const Arguments& arguments) {
  int64_t bounds[3] = {0, 0, 1};
  const size_t count = arguments.positional.size();
  if (count == 0 || count > 3) return jinja_error("range expects 1 to 3 arguments");
  for (size_t i = 0; i < count; ++i) {
    const Value& bound = arguments.positional[i];
    if (bound.is(Kind::kUndefined)) return jinja_error(bound.as_string());
    bounds[count == 1 ? 1 : i] = TRY(arguments.integer(i, "range", 0));
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) return jinja_error("range() arg 3 must not be zero");
  std::vector<Value> items;
  for (int64_t value = start; step > 0 ? value < stop : value > stop;) {
    if (static_cast<int64_t>(items.size()) == kRangeItemsMax) {
      return jinja_error(fmt::format("a range has more than {} numbers", kRangeItemsMax));
    }
    items.push_back(Value::of(value));
    if (__builtin_add_overflow(value, step, &value)) break;
  }
  return heap_.list(std::move(items));
}

Result<Value> Interpreter::format_now(const Arguments& arguments) {
  const Value* format = TRY(arguments.need(0, "format"));
  if (!format->is(Kind::kText) || format->as_string().find('\0') != std::string::npos) {
    return jinja_error("strftime_now needs a format");
  }
  // An extra byte distinguishes an empty result from one that does not fit.
  const std::string pattern = format->as_string() + "x";
  std::string text(kTimeBytesMax, '\0');
  const size_t bytes = std::strftime(text.data(), text.size(), pattern.c_str(), &now_);
  if (bytes == 0) {
    return jinja_error(fmt::format("a time has more than {} bytes", kTimeBytesMax));
  }
  return heap_.text(replace_invalid_utf8(std::string_view(text).substr(0, bytes - 1)));
}

}  // namespace lockstep::jinja

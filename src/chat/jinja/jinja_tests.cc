// The tests that may follow "is", or be used in select, reject, selectattr and rejectattr.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

using Test = Result<bool> (*)(Heap&, const Value& subject, const Arguments&);

struct NamedTest {
  std::string_view name;
  Test test;
};

bool has_test(std::string_view name);

template <Kind kKind>
Result<bool> has_kind(Heap&, const Value& subject, const Arguments&) {
  return subject.is(kKind);
}

template <Kind kKind>
Result<bool> lacks_kind(Heap&, const Value& subject, const Arguments&) {
  return !subject.is(kKind);
}

template <bool kTruth>
Result<bool> is_constant(Heap&, const Value& subject, const Arguments&) {
  return subject.is(Kind::kBool) && subject.truth == kTruth;
}

template <Comparison kComparison>
Result<bool> compares(Heap& heap, const Value& subject, const Arguments& arguments) {
  return jinja_compare(heap, kComparison, subject, *TRY(arguments.need(0, "other")));
}

Result<bool> is_in(Heap& heap, const Value& subject, const Arguments& arguments) {
  return jinja_contains(heap, *TRY(arguments.need(0, "seq")), subject);
}

Result<bool> is_number(Heap&, const Value& subject, const Arguments&) {
  return subject.is_number();
}

Result<bool> is_iterable(Heap&, const Value& subject, const Arguments&) {
  return subject.is(Kind::kText) || subject.is(Kind::kList) || subject.is(Kind::kDict) ||
         subject.is(Kind::kUndefined) || subject.is(Kind::kLoop);
}

Result<bool> test_sequence(Heap&, const Value& subject, const Arguments&) {
  if (subject.is(Kind::kList)) return subject.list->shape != Shape::kGenerator;
  return subject.is(Kind::kText) || subject.is(Kind::kDict) || subject.is(Kind::kUndefined);
}

Result<bool> is_callable(Heap&, const Value& subject, const Arguments&) {
  return subject.is(Kind::kMacro) || subject.is(Kind::kMethod) || subject.is(Kind::kFunction) ||
         subject.is(Kind::kUndefined) || subject.is(Kind::kLoop);
}

template <int64_t kRemainder>
Result<bool> has_parity(Heap& heap, const Value& subject, const Arguments&) {
  const Value rest =
      TRY(jinja_arithmetic(heap, Arithmetic::kModulo, subject, Value::of(int64_t{2})));
  return jinja_equal(heap, rest, Value::of(kRemainder));
}

Result<bool> is_divisible(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Value rest =
      TRY(jinja_arithmetic(heap, Arithmetic::kModulo, subject, *TRY(arguments.need(0, "num"))));
  return jinja_equal(heap, rest, Value::of(int64_t{0}));
}

template <LetterCase kCase>
Result<bool> has_case(Heap& heap, const Value& subject, const Arguments&) {
  const MarkedText text = TRY(jinja_str(heap, subject));
  const auto other = kCase == LetterCase::kUpper ? LetterCase::kLower : LetterCase::kUpper;
  return with_case(text, kCase).text() == text.text() &&
         with_case(text, other).text() != text.text();
}

// Python's `is`. Numbers and texts have no address here: equal ones of one type are the same.
Result<bool> is_same(Heap& heap, const Value& subject, const Arguments& arguments) {
  const Value& other = *TRY(arguments.need(0, "other"));
  if (subject.kind != other.kind) return false;
  if (subject.is(Kind::kList)) return subject.list == other.list;
  if (subject.is(Kind::kDict) || subject.is(Kind::kNamespace)) {
    return subject.dict == other.dict;
  }
  return jinja_equal(heap, subject, other);
}

Result<bool> is_escaped(Heap&, const Value& subject, const Arguments&) {
  return subject.is(Kind::kText) && subject.is_markup;
}

Result<bool> names_filter(Heap&, const Value& subject, const Arguments&) {
  return subject.is(Kind::kText) && has_filter(subject.as_string());
}

Result<bool> names_test(Heap&, const Value& subject, const Arguments&) {
  return subject.is(Kind::kText) && has_test(subject.as_string());
}

constexpr NamedTest kTests[] = {
    {"defined", lacks_kind<Kind::kUndefined>},
    {"undefined", has_kind<Kind::kUndefined>},
    {"none", has_kind<Kind::kNone>},
    {"string", has_kind<Kind::kText>},
    {"mapping", has_kind<Kind::kDict>},
    {"boolean", has_kind<Kind::kBool>},
    {"integer", has_kind<Kind::kInt>},
    {"float", has_kind<Kind::kFloat>},
    {"number", is_number},
    {"iterable", is_iterable},
    {"sequence", test_sequence},
    {"callable", is_callable},
    {"true", is_constant<true>},
    {"false", is_constant<false>},
    {"odd", has_parity<1>},
    {"even", has_parity<0>},
    {"divisibleby", is_divisible},
    {"lower", has_case<LetterCase::kLower>},
    {"upper", has_case<LetterCase::kUpper>},
    {"sameas", is_same},
    {"escaped", is_escaped},
    {"filter", names_filter},
    {"test", names_test},
    {"in", is_in},
    {"equalto", compares<Comparison::kEqual>},
    {"eq", compares<Comparison::kEqual>},
    {"==", compares<Comparison::kEqual>},
    {"ne", compares<Comparison::kUnequal>},
    {"!=", compares<Comparison::kUnequal>},
    {"lt", compares<Comparison::kLess>},
    {"lessthan", compares<Comparison::kLess>},
    {"<", compares<Comparison::kLess>},
    {"le", compares<Comparison::kLessEqual>},
    {"<=", compares<Comparison::kLessEqual>},
    {"gt", compares<Comparison::kGreater>},
    {"greaterthan", compares<Comparison::kGreater>},
    {">", compares<Comparison::kGreater>},
    {"ge", compares<Comparison::kGreaterEqual>},
    {">=", compares<Comparison::kGreaterEqual>},
};

const NamedTest* find_test(std::string_view name) {
  const auto* entry =
      std::find_if(std::begin(kTests), std::end(kTests),
                   [name](const NamedTest& candidate) { return candidate.name == name; });
  return entry == std::end(kTests) ? nullptr : entry;
}

bool has_test(std::string_view name) {
  return find_test(name) != nullptr;
}

}  // namespace

Result<bool> call_test(Heap& heap, std::string_view name, const Value& subject,
                       const Arguments& arguments) {
  const NamedTest* entry = find_test(name);
  if (!entry) return jinja_error(fmt::format("there is no test named '{}'", name));
  return entry->test(heap, subject, arguments);
}

}  // namespace lockstep::jinja

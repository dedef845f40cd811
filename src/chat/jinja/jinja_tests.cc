// The tests that may follow "is", or be used in select, reject, selectattr and rejectattr.
#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"
#include "chat/text/characters.h"

namespace lockstep {
namespace {

using Test = Result<bool> (*)(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&);

struct NamedTest {
  std::string_view name;
  Test test;
};

bool has_test(std::string_view name);

template <JinjaKind kKind>
Result<bool> has_kind(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(kKind);
}

template <JinjaKind kKind>
Result<bool> lacks_kind(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return !subject.is(kKind);
}

template <bool kTruth>
Result<bool> is_constant(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(JinjaKind::kBool) && subject.truth == kTruth;
}

template <JinjaComparison kComparison>
Result<bool> compares(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments& arguments) {
  return jinja_compare(heap, kComparison, subject, *TRY(arguments.need(0, "other")));
}

Result<bool> is_in(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments& arguments) {
  return jinja_contains(heap, *TRY(arguments.need(0, "seq")), subject);
}

Result<bool> is_number(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is_number();
}

Result<bool> is_iterable(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(JinjaKind::kText) || subject.is(JinjaKind::kList) ||
         subject.is(JinjaKind::kDict) || subject.is(JinjaKind::kUndefined) ||
         subject.is(JinjaKind::kLoop);
}

Result<bool> test_sequence(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  if (subject.is(JinjaKind::kList)) return subject.list->shape != JinjaShape::kGenerator;
  return subject.is(JinjaKind::kText) || subject.is(JinjaKind::kDict) ||
         subject.is(JinjaKind::kUndefined);
}

Result<bool> is_callable(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(JinjaKind::kMacro) || subject.is(JinjaKind::kMethod) ||
         subject.is(JinjaKind::kFunction) || subject.is(JinjaKind::kUndefined) ||
         subject.is(JinjaKind::kLoop);
}

template <int64_t kRemainder>
Result<bool> has_parity(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments&) {
  const JinjaValue rest =
      TRY(jinja_arithmetic(heap, JinjaArithmetic::kModulo, subject, JinjaValue::of(int64_t{2})));
  return jinja_equal(heap, rest, JinjaValue::of(kRemainder));
}

Result<bool> is_divisible(JinjaHeap& heap, const JinjaValue& subject,
                          const JinjaArguments& arguments) {
  const JinjaValue rest = TRY(
      jinja_arithmetic(heap, JinjaArithmetic::kModulo, subject, *TRY(arguments.need(0, "num"))));
  return jinja_equal(heap, rest, JinjaValue::of(int64_t{0}));
}

template <LetterCase kCase>
Result<bool> has_case(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments&) {
  const MarkedText text = TRY(jinja_str(heap, subject));
  const auto other = kCase == LetterCase::kUpper ? LetterCase::kLower : LetterCase::kUpper;
  return with_case(text, kCase).text() == text.text() &&
         with_case(text, other).text() != text.text();
}

// Python's `is`. Numbers and texts have no address here: equal ones of one type are the same.
Result<bool> is_same(JinjaHeap& heap, const JinjaValue& subject, const JinjaArguments& arguments) {
  const JinjaValue& other = *TRY(arguments.need(0, "other"));
  if (subject.kind != other.kind) return false;
  if (subject.is(JinjaKind::kList)) return subject.list == other.list;
  if (subject.is(JinjaKind::kDict) || subject.is(JinjaKind::kNamespace)) {
    return subject.dict == other.dict;
  }
  return jinja_equal(heap, subject, other);
}

Result<bool> is_escaped(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(JinjaKind::kText) && subject.is_markup;
}

Result<bool> names_filter(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(JinjaKind::kText) && has_filter(subject.as_string());
}

Result<bool> names_test(JinjaHeap&, const JinjaValue& subject, const JinjaArguments&) {
  return subject.is(JinjaKind::kText) && has_test(subject.as_string());
}

constexpr NamedTest kTests[] = {
    {"defined", lacks_kind<JinjaKind::kUndefined>},
    {"undefined", has_kind<JinjaKind::kUndefined>},
    {"none", has_kind<JinjaKind::kNone>},
    {"string", has_kind<JinjaKind::kText>},
    {"mapping", has_kind<JinjaKind::kDict>},
    {"boolean", has_kind<JinjaKind::kBool>},
    {"integer", has_kind<JinjaKind::kInt>},
    {"float", has_kind<JinjaKind::kFloat>},
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
    {"equalto", compares<JinjaComparison::kEqual>},
    {"eq", compares<JinjaComparison::kEqual>},
    {"==", compares<JinjaComparison::kEqual>},
    {"ne", compares<JinjaComparison::kUnequal>},
    {"!=", compares<JinjaComparison::kUnequal>},
    {"lt", compares<JinjaComparison::kLess>},
    {"lessthan", compares<JinjaComparison::kLess>},
    {"<", compares<JinjaComparison::kLess>},
    {"le", compares<JinjaComparison::kLessEqual>},
    {"<=", compares<JinjaComparison::kLessEqual>},
    {"gt", compares<JinjaComparison::kGreater>},
    {"greaterthan", compares<JinjaComparison::kGreater>},
    {">", compares<JinjaComparison::kGreater>},
    {"ge", compares<JinjaComparison::kGreaterEqual>},
    {">=", compares<JinjaComparison::kGreaterEqual>},
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

Result<bool> call_test(JinjaHeap& heap, std::string_view name, const JinjaValue& subject,
                       const JinjaArguments& arguments) {
  const NamedTest* entry = find_test(name);
  if (!entry) return jinja_error(fmt::format("there is no test named '{}'", name));
  return entry->test(heap, subject, arguments);
}

}  // namespace lockstep

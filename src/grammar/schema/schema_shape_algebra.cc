// Set operations on shapes: intersection, union and difference.
#include <algorithm>
#include <unordered_map>

#include "base/text_hash.h"
#include "grammar/schema/number_set.h"
#include "grammar/schema/schema_objects.h"
#include "grammar/schema/schema_shape.h"

namespace lockstep {
namespace {

constexpr int kComparingDepthMax = 4;
constexpr size_t kStepsOfKey = 10;  // of an object, for a table of names

class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

SharedDfa shared_words(Dfa dfa) {
  return dfa.empty() ? SharedDfa() : std::make_shared<const Dfa>(std::move(dfa));
}

size_t steps_of_shape_copy(const SchemaShape& shape) {
  return 2 * (shape.arrays.size() + shape.objects.size());
}

// The cost of append_all() with these.
size_t steps_of_append(const SchemaList& list, const SchemaList& others) {
  return 2 + (list.size() + others.size() + list.size() * others.size()) / 50;
}

void append_all(SchemaList& list, const SchemaList& others) {
  for (const Json* schema : others) {
    if (std::find(list.begin(), list.end(), schema) == list.end()) list.push_back(schema);
  }
}

bool is_never(const Json* schema) {
  return schema->is_bool() && !schema->get_bool();
}

Error too_many_alternatives() {
  return Error{ErrorCode::kExhausted,
               "the schema's anyOf, oneOf and allOf multiply out to more than the limit of " +
                   std::to_string(kSchemaAlternativesMax) + " alternatives; make it simpler"};
}

// Combines every alternative of one with every alternative of the other.
template <class Shape>
Result<std::vector<Shape>> crossed(const std::vector<Shape>& a, const std::vector<Shape>& b,
                                   WorkBudget& budget) {
  if (a.size() * b.size() > kSchemaAlternativesMax) return too_many_alternatives();
  std::vector<Shape> result;
  for (const Shape& first : a) {
    for (const Shape& second : b) {
      if (!budget.spend(steps_of_append(first.schemas, second.schemas))) return too_much_work();
      Shape both = first;
      append_all(both.schemas, second.schemas);
      result.push_back(std::move(both));
    }
  }
  return result;
}

template <class Shape>
bool has_all(const std::vector<Shape>& shapes) {
  return std::any_of(shapes.begin(), shapes.end(),
                     [](const Shape& shape) { return shape.schemas.empty(); });
}

template <class Shape>
Status append_alternatives(std::vector<Shape>& to, const std::vector<Shape>& from,
                           WorkBudget& budget) {
  for (const Shape& shape : from) {
    // Most others differ in their first schemas.
    if (!budget.spend(2 + (to.size() + shape.schemas.size()) / 8)) return too_much_work();
    const bool is_known = std::any_of(
        to.begin(), to.end(), [&](const Shape& other) { return other.schemas == shape.schemas; });
    if (!is_known) to.push_back(shape);
  }
  if (to.size() > kSchemaAlternativesMax) return too_many_alternatives();
  return Ok{};
}

}  // namespace

Result<Dfa> SchemaShapes::words_of(const StringShape& strings) {
  if (!strings.words) {
    return dfa_of_length(SymbolSet::scalar_values(), strings.min, strings.max, budget_);
  }
  if (strings.min == 0 && strings.max == UINT32_MAX) {
    if (!budget_.spend(2 * strings.words->states.size())) return too_much_work();
    return *strings.words;
  }
  const Dfa lengths =
      TRY(dfa_of_length(SymbolSet::scalar_values(), strings.min, strings.max, budget_));
  return join(*strings.words, lengths, DfaJoin::kBoth, budget_);
}

Result<SchemaShape> SchemaShapes::intersected(const SchemaShape& a, const SchemaShape& b) {
  const size_t crossings = a.arrays.size() * b.arrays.size() + a.objects.size() * b.objects.size();
  if (!budget_.spend(50 + 20 * crossings)) return too_much_work();
  SchemaShape shape;
  shape.allows_null = a.allows_null && b.allows_null;
  shape.allows_true = a.allows_true && b.allows_true;
  shape.allows_false = a.allows_false && b.allows_false;
  if (a.numbers && b.numbers) {
    shape.numbers = TRY(numbers_of_both(a.numbers, b.numbers, DfaJoin::kBoth));
  }
  if (a.strings && b.strings) {
    StringShape strings{nullptr, std::max(a.strings->min, b.strings->min),
                        std::min(a.strings->max, b.strings->max)};
    bool is_possible = strings.min <= strings.max;
    if (a.strings->words && b.strings->words) {
      Dfa joined = TRY(join(*a.strings->words, *b.strings->words, DfaJoin::kBoth, budget_));
      is_possible &= !joined.empty();
      strings.words = std::make_shared<const Dfa>(std::move(joined));
    } else {
      strings.words = a.strings->words ? a.strings->words : b.strings->words;
    }
    if (is_possible && strings.words && (strings.min > 0 || strings.max != UINT32_MAX)) {
      Dfa words = TRY(words_of(strings));
      is_possible = !words.empty();
      strings = {std::make_shared<const Dfa>(std::move(words)), 0, UINT32_MAX};
    }
    if (is_possible) shape.strings = std::move(strings);
  }
  shape.arrays = TRY(crossed(a.arrays, b.arrays, budget_));
  shape.objects = TRY(crossed(a.objects, b.objects, budget_));
  return shape;
}

Result<SharedDfa> SchemaShapes::numbers_of_both(const SharedDfa& a, const SharedDfa& b,
                                                DfaJoin how) {
  if (a == b && how != DfaJoin::kFirstOnly) return a;
  return shared_words(TRY(join(*a, *b, how, budget_)));
}

Result<SchemaShape> SchemaShapes::united(std::vector<SchemaShape> shapes) {
  if (shapes.empty()) return SchemaShape{};
  while (shapes.size() > 1) {
    std::vector<SchemaShape> pairs;
    for (size_t i = 0; i + 1 < shapes.size(); i += 2) {
      pairs.push_back(TRY(united(shapes[i], shapes[i + 1])));
    }
    if (shapes.size() % 2 == 1) pairs.push_back(std::move(shapes.back()));
    shapes = std::move(pairs);
  }
  return std::move(shapes[0]);
}

Result<SchemaShape> SchemaShapes::united(const SchemaShape& a, const SchemaShape& b) {
  if (!budget_.spend(10 + steps_of_shape_copy(a))) return too_much_work();
  SchemaShape shape = a;
  shape.allows_null |= b.allows_null;
  shape.allows_true |= b.allows_true;
  shape.allows_false |= b.allows_false;
  if (b.numbers) {
    shape.numbers =
        a.numbers ? TRY(numbers_of_both(a.numbers, b.numbers, DfaJoin::kEither)) : b.numbers;
  }
  if (b.strings) {
    if (!a.strings) {
      shape.strings = b.strings;
    } else if (a.strings->is_any() || b.strings->is_any()) {
      shape.strings = StringShape{};
    } else {
      const Dfa of_a = TRY(words_of(*a.strings)), of_b = TRY(words_of(*b.strings));
      Dfa either = TRY(join(of_a, of_b, DfaJoin::kEither, budget_));
      shape.strings = StringShape{std::make_shared<const Dfa>(std::move(either))};
    }
  }
  TRY(append_alternatives(shape.arrays, b.arrays, budget_));
  TRY(append_alternatives(shape.objects, b.objects, budget_));
  return shape;
}

Result<SchemaShape> SchemaShapes::without(const SchemaShape& a, const SchemaShape& b,
                                          std::string_view keyword) {
  if (!budget_.spend(10 + steps_of_shape_copy(a))) return too_much_work();
  SchemaShape shape = a;
  shape.allows_null &= !b.allows_null;
  shape.allows_true &= !b.allows_true;
  shape.allows_false &= !b.allows_false;
  if (a.numbers && b.numbers) {
    shape.numbers = shared_words(TRY(join(*a.numbers, *b.numbers, DfaJoin::kFirstOnly, budget_)));
    // `b` also allows its numbers with exponents, which its automaton lacks: keeps only plain ones.
    if (shape.numbers) {
      Dfa rest = TRY(join(*shape.numbers, *plain_number(), DfaJoin::kBoth, budget_));
      TRY(narrow_to_exact(rest));
      shape.numbers = shared_words(std::move(rest));
    }
  }
  if (a.strings && b.strings) {
    Dfa rest = TRY(
        join(TRY(words_of(*a.strings)), TRY(words_of(*b.strings)), DfaJoin::kFirstOnly, budget_));
    shape.strings.reset();
    if (!rest.empty()) {
      shape.strings = StringShape{std::make_shared<const Dfa>(std::move(rest))};
    }
  }
  const Error unknown{ErrorCode::kUnsupported, std::string(keyword)};
  const auto subtract = [&](auto& from, const auto& others) -> Status {
    if (has_all(others)) from.clear();
    for (const auto& one : from) {
      for (const auto& other : others) {
        if (!TRY(are_disjoint(one, other))) return unknown;
      }
    }
    return Ok{};
  };
  TRY(subtract(shape.arrays, b.arrays));
  TRY(subtract(shape.objects, b.objects));
  return shape;
}

// Whether no text that `texts` allows is valid for `judge`, which may allow unnamed keys: `judge`
// requires a key that `texts` never writes, or a required key has no common value.
Result<bool> SchemaShapes::refuses_all_of(const ObjectShape& texts, const ObjectShape& judge) {
  const std::vector<KeySchema> written = TRY(named_keys(*this, texts));
  const std::vector<KeySchema> judged = TRY(named_keys(*this, judge));
  if (!budget_.spend(kStepsOfKey * (written.size() + judged.size()))) return too_much_work();
  std::unordered_map<std::string_view, const KeySchema*, TextHash> own_keys;
  for (const KeySchema& key : written) own_keys.emplace(key.name, &key);
  const bool writes_only_named = is_closed(texts);
  std::vector<SchemaList> both;  // of each key that must satisfy both
  for (const KeySchema& key : judged) {
    const auto own = own_keys.find(key.name);
    const bool is_own = own != own_keys.end();
    if (!key.is_required && (!is_own || !own->second->is_required)) continue;
    if (!is_own && writes_only_named) return true;
    SchemaList value = is_own ? own->second->value : TRY(value_of_key(*this, texts, key.name));
    if (!budget_.spend(steps_of_append(value, key.value))) return too_much_work();
    append_all(value, key.value);
    if (std::any_of(value.begin(), value.end(), is_never)) return true;
    both.push_back(std::move(value));
  }
  for (const SchemaList& value : both) {
    if (TRY(is_empty(value))) return true;
  }
  return false;
}

// False if unknown.
Result<bool> SchemaShapes::is_empty(const SchemaList& schemas) {
  const auto shape = shape_of(schemas);
  if (!shape.ok() && shape.error().code != ErrorCode::kUnsupported) return shape.error();
  return shape.ok() && shape.value().is_empty();
}

Result<bool> SchemaShapes::are_disjoint(const ObjectShape& a, const ObjectShape& b) {
  const Nested nested(comparing_depth_);
  if (comparing_depth_ > kComparingDepthMax) return false;
  return TRY(refuses_all_of(a, b)) && TRY(refuses_all_of(b, a));
}

Result<bool> SchemaShapes::are_disjoint(const ArrayShape& a, const ArrayShape& b) {
  const Nested nested(comparing_depth_);
  if (comparing_depth_ > kComparingDepthMax) return false;
  const ArrayFacts first = TRY(array_facts(*this, a));
  const ArrayFacts second = TRY(array_facts(*this, b));
  if (first.min > second.max || second.min > first.max) return true;
  const uint32_t sure = std::max(first.min, second.min);  // least items of any common array
  const size_t named = std::max(first.first.size(), second.first.size()) + 1;
  for (size_t i = 0; i < std::min<size_t>(sure, named); ++i) {
    SchemaList both = i < first.first.size() ? first.first[i] : first.rest;
    const SchemaList& others = i < second.first.size() ? second.first[i] : second.rest;
    if (!budget_.spend(10 + both.size() + steps_of_append(both, others))) return too_much_work();
    append_all(both, others);
    if (TRY(is_empty(both))) return true;
  }
  return false;
}

}  // namespace lockstep

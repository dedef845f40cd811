// Sets of values joined: what both of two schemas allow, either, or only the first.
#include <algorithm>

#include "grammar/number_set.h"
#include "grammar/schema_objects.h"
#include "grammar/schema_shape.h"

namespace lockstep {
namespace {

constexpr int kComparingDepthMax = 4;

class Nested {
 public:
  explicit Nested(int& depth) : depth_(depth) { ++depth_; }
  ~Nested() { --depth_; }
  Nested(const Nested&) = delete;
  Nested& operator=(const Nested&) = delete;

 private:
  int& depth_;
};

using Words = std::shared_ptr<const Dfa>;

Words shared_words(Dfa dfa) {
  return dfa.empty() ? Words() : std::make_shared<const Dfa>(std::move(dfa));
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

// Every alternative of one with every alternative of the other.
template <class Shape>
Result<std::vector<Shape>> crossed(const std::vector<Shape>& a, const std::vector<Shape>& b) {
  if (a.size() * b.size() > kSchemaAlternativesMax) return too_many_alternatives();
  std::vector<Shape> result;
  for (const Shape& first : a) {
    for (const Shape& second : b) {
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
Status append_alternatives(std::vector<Shape>& to, const std::vector<Shape>& from) {
  for (const Shape& shape : from) {
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
    return dfa_of_length(SymbolSet::scalar_values(), strings.min, strings.max);
  }
  if (strings.min == 0 && strings.max == UINT32_MAX) return *strings.words;
  const Dfa lengths = TRY(dfa_of_length(SymbolSet::scalar_values(), strings.min, strings.max));
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
    shape.numbers = shared_words(TRY(join(*a.numbers, *b.numbers, DfaJoin::kBoth, budget_)));
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
  shape.arrays = TRY(crossed(a.arrays, b.arrays));
  shape.objects = TRY(crossed(a.objects, b.objects));
  return shape;
}

Result<SchemaShape> SchemaShapes::united(const SchemaShape& a, const SchemaShape& b) {
  if (!budget_.spend(50)) return too_much_work();
  SchemaShape shape = a;
  shape.allows_null |= b.allows_null;
  shape.allows_true |= b.allows_true;
  shape.allows_false |= b.allows_false;
  if (b.numbers) {
    shape.numbers = a.numbers
                        ? shared_words(TRY(join(*a.numbers, *b.numbers, DfaJoin::kEither, budget_)))
                        : b.numbers;
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
  TRY(append_alternatives(shape.arrays, b.arrays));
  TRY(append_alternatives(shape.objects, b.objects));
  return shape;
}

Result<SchemaShape> SchemaShapes::without(const SchemaShape& a, const SchemaShape& b,
                                          std::string_view keyword) {
  SchemaShape shape = a;
  shape.allows_null &= !b.allows_null;
  shape.allows_true &= !b.allows_true;
  shape.allows_false &= !b.allows_false;
  if (a.numbers && b.numbers) {
    shape.numbers = shared_words(TRY(join(*a.numbers, *b.numbers, DfaJoin::kFirstOnly, budget_)));
    // What `b` writes without exponents it also allows with them, so those are unknown.
    if (shape.numbers) {
      Dfa rest = TRY(join(*shape.numbers, plain_number(), DfaJoin::kBoth, budget_));
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

// Whether what `texts` lets a model write is never valid for `judge`, which may allow keys that it
// does not name: it requires a key that `texts` does not write, or no value fits both.
Result<bool> SchemaShapes::refuses_all_of(const ObjectShape& texts, const ObjectShape& judge) {
  const std::vector<KeySchema> written = TRY(named_keys(*this, texts));
  const std::vector<KeySchema> judged = TRY(named_keys(*this, judge));
  const auto named = [](const std::vector<KeySchema>& keys, const std::string& name) {
    const auto key = std::find_if(keys.begin(), keys.end(),
                                  [&](const KeySchema& entry) { return entry.name == name; });
    return key == keys.end() ? nullptr : &*key;
  };
  std::vector<SchemaList> both;  // of each key that would have to fit both
  for (const KeySchema& key : judged) {
    const KeySchema* own = named(written, key.name);
    if (!key.is_required && (!own || !own->is_required)) continue;
    if (!own && is_closed(texts)) return true;
    SchemaList value = TRY(value_of_key(*this, texts, key.name));
    append_all(value, key.value);
    if (std::any_of(value.begin(), value.end(), is_never)) return true;
    both.push_back(std::move(value));
  }
  for (const SchemaList& value : both) {
    if (TRY(is_empty(value))) return true;
  }
  return false;
}

// False where it cannot be told.
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
  const uint32_t sure = std::max(first.min, second.min);  // so many items any common array has
  const size_t named = std::max(first.first.size(), second.first.size()) + 1;
  for (size_t i = 0; i < std::min<size_t>(sure, named); ++i) {
    SchemaList both = i < first.first.size() ? first.first[i] : first.rest;
    append_all(both, i < second.first.size() ? second.first[i] : second.rest);
    if (TRY(is_empty(both))) return true;
  }
  return false;
}

}  // namespace lockstep

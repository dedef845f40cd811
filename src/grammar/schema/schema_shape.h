// A JSON schema as the set of values that it allows, by type: its keywords combined with its $refs,
// allOf, anyOf, oneOf, not and if. Numbers and strings are automata, so that keywords combine
// exactly; arrays and objects are lists of alternatives, each a list of schemas that all apply.
// Used by schema_grammar.cc; internal to the JSON-schema front end.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "grammar/dfa/dfa.h"
#include "grammar/schema/number_set.h"
#include "json/json.h"

namespace lockstep {

// Schemas that all apply to one value, in the order in which they were found.
using SchemaList = std::vector<const Json*>;

// Strings: the words of an automaton with min to max characters.
struct StringShape {
  std::shared_ptr<const Dfa> words;  // null: any
  uint32_t min = 0;
  uint32_t max = UINT32_MAX;
  bool is_any() const { return !words && min == 0 && max == UINT32_MAX; }
};

// The schemas whose array (or object) keywords apply. None: any array.
struct ArrayShape {
  SchemaList schemas;
};
struct ObjectShape {
  SchemaList schemas;
};

struct SchemaShape {
  bool allows_null = false;
  bool allows_true = false;
  bool allows_false = false;
  SharedDfa numbers;  // null: none
  std::optional<StringShape> strings;
  std::vector<ArrayShape> arrays;
  std::vector<ObjectShape> objects;

  bool is_empty() const {
    return !allows_null && !allows_true && !allows_false && !numbers && !strings &&
           arrays.empty() && objects.empty();
  }
};

class SchemaShapes {
 public:
  // `budget` outlives this.
  SchemaShapes(const Json& root, bool is_strict, WorkBudget& budget)
      : root_(root), is_strict_(is_strict), budget_(budget) {}

  Result<SchemaShape> shape_of(const SchemaList& schemas);
  // An automaton of the words, with the length limits applied.
  Result<Dfa> words_of(const StringShape& strings);
  // The automaton of "pattern", cached.
  Result<std::shared_ptr<const Dfa>> pattern(const std::string& text);
  // Stores a schema as long as this lives. Callers that copy parts of another schema spend for
  // them.
  const Json* keep(Json schema);
  // Strict: an error that names the keyword; else adds a warning.
  Status cannot_enforce(std::string_view keyword, std::string_view why = "");

  WorkBudget& budget() { return budget_; }
  std::vector<std::string> take_warnings() { return std::move(warnings_); }

 private:
  using Object = JsonObject;

  Result<SchemaShape> shape_of_one(const Json& schema, int depth);
  Result<SchemaShape> shape_of_object(const Json& schema, int depth);
  Result<SchemaShape> own_shape(const Json& schema);
  Status check_keywords(const Json& schema);
  Result<SharedDfa> own_numbers(const Json& schema, bool only_whole);
  Status narrow_to_exact(Dfa& numbers);
  Result<SharedDfa> numbers_of_both(const SharedDfa& a, const SharedDfa& b, DfaJoin how);
  Result<StringShape> own_strings(const Json& schema);
  Result<const Json*> referenced(std::string_view reference);
  Result<SchemaShape> shape_of_values(const JsonArray& values);
  Result<SchemaShape> shape_of_value(const Json& value);
  Result<SchemaShape> shape_of_object_value(const JsonObject& value);
  Result<SchemaShape> any_of(const JsonArray& schemas, int depth);
  Result<SchemaShape> one_of(const JsonArray& schemas, int depth);
  Result<SchemaShape> conditional(const Json& schema, int depth);

  Result<SchemaShape> intersected(const SchemaShape& a, const SchemaShape& b);
  Result<SchemaShape> united(const SchemaShape& a, const SchemaShape& b);
  // All shapes merged pairwise, so that the growing result is not copied for each.
  Result<SchemaShape> united(std::vector<SchemaShape> shapes);
  // The values of `a` that `b` does not allow; kUnsupported with `keyword` if both have arrays or
  // objects.
  Result<SchemaShape> without(const SchemaShape& a, const SchemaShape& b, std::string_view keyword);
  Result<bool> are_disjoint(const ObjectShape& a, const ObjectShape& b);
  Result<bool> are_disjoint(const ArrayShape& a, const ArrayShape& b);
  Result<bool> is_empty(const SchemaList& schemas);
  Result<bool> refuses_all_of(const ObjectShape& texts, const ObjectShape& judge);

  const Json& root_;
  bool is_strict_;
  WorkBudget& budget_;
  std::deque<Json> kept_;
  std::map<std::string, std::shared_ptr<const Dfa>> patterns_;
  std::vector<std::string> warnings_;
  std::set<std::string> known_warnings_;
  int comparing_depth_ = 0;  // nesting of compared alternatives
};

}  // namespace lockstep

// SchemaGrammar: turns shapes of values into grammar rules, one for each list of schemas that
// applies to some value, so that recursive schemas become recursive rules. Internal to the
// JSON-schema front end.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "grammar/schema/bare_notation.h"
#include "grammar/schema/json_schema.h"
#include "grammar/schema/schema_objects.h"
#include "grammar/schema/schema_shape.h"

namespace lockstep {

class SchemaGrammar {
 public:
  using Expression = Grammar::Expression;

  SchemaGrammar(Grammar& grammar, const Json& root, const JsonSchemaOptions& options);

  // The schemas that apply to the whole value.
  SchemaList whole(const Json& schema, bool only_objects);
  // A value that satisfies all of `schemas`.
  Expression value(SchemaList schemas);
  // The values of a shape; parts without a rule get one, which define_all() defines.
  Result<Expression> values_of(const SchemaShape& shape);
  // The members of an object in order. members[i] belongs to facts.keys[i], `other` is any unnamed
  // key's; `separator` goes between two.
  Result<Expression> members_in_order(const ObjectFacts& facts,
                                      const std::vector<Expression>& members, Expression other,
                                      Expression separator);
  // Call after the last value() or values_of(): defines all pending rules.
  Result<JsonSchemaGrammar> define_all(Expression start);

  Grammar& grammar() { return grammar_; }
  SchemaShapes& shapes() { return shapes_; }

 private:
  struct Pending {
    SchemaList schemas;
    Grammar::Rule rule;
  };

  Result<Expression> quoted(const StringShape& strings);
  Expression in_quotes(Expression content);
  Expression text_of(const Dfa& words);
  Result<Expression> key_of(const KeySchema& key);
  Expression key_text(const std::string& name);
  Result<Expression> array(const ArrayShape& shape);
  Result<Expression> object(const ObjectShape& shape);
  Expression member(Expression key, SchemaList schemas);
  Expression enclosed(std::string_view open, Expression content, std::string_view close);

  Grammar& grammar_;
  SchemaShapes shapes_;
  std::optional<BareTexts> bare_;  // nullopt: JSON
  Expression any_character_;
  Expression gap_;    // after ":"
  Expression break_;  // between the parts of arrays and objects
  std::map<SchemaList, Grammar::Rule> rules_;
  std::deque<Pending> pending_;
};

// kExhausted if it is longer than kSchemaBytesMax.
Status check_schema_size(const Json& schema);

}  // namespace lockstep

// SchemaGrammar: shapes of values to rules of a grammar, one rule for each list of schemas that
// holds at some place, so that recursive schemas become recursive rules. Internal to the
// JSON-schema front end.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "grammar/json_schema.h"
#include "grammar/schema_objects.h"
#include "grammar/schema_shape.h"

namespace lockstep {

class SchemaGrammar {
 public:
  using Expression = Grammar::Expression;

  SchemaGrammar(Grammar& grammar, const Json& root, const JsonSchemaOptions& options);

  // The schemas that hold for the whole value.
  SchemaList whole(const Json& schema, bool only_objects);
  // A value for which all of `schemas` hold.
  Expression value(SchemaList schemas);
  // The values of a shape; what has no rule yet gets one, which define_all() defines.
  Result<Expression> values_of(const SchemaShape& shape);
  // The keys of an object in their order. members[i] is the one of facts.keys[i], `other` any that
  // has no name; `separator` stands between two.
  Result<Expression> members_in_order(const ObjectFacts& facts,
                                      const std::vector<Expression>& members, Expression other,
                                      Expression separator);
  // After the last value() or values_of(): the rules of all that they lead to.
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
  Expression key_text(const std::string& name);
  Result<Expression> array(const ArrayShape& shape);
  Result<Expression> object(const ObjectShape& shape);
  Expression member(Expression key, SchemaList schemas);
  Expression enclosed(std::string_view open, Expression content, std::string_view close);

  Grammar& grammar_;
  SchemaShapes shapes_;
  Expression any_character_;
  Expression gap_;    // behind ":"
  Expression break_;  // between the parts of arrays and objects
  std::map<SchemaList, Grammar::Rule> rules_;
  std::deque<Pending> pending_;
};

// kExhausted for what is longer than kSchemaBytesMax.
Status check_schema_size(const Json& schema);

}  // namespace lockstep

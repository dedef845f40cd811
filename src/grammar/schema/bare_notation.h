// Texts and keys in a notation like JSON that some families use for the arguments of a call
// (chat/tools/tool_format.h, kBareKeys): strings without escapes between two markers, keys without
// quotes, in alphabetical order. Part of SchemaGrammar; internal to the JSON-schema front end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/automaton/grammar.h"
#include "grammar/schema/json_schema.h"
#include "grammar/schema/schema_objects.h"
#include "grammar/schema/schema_shape.h"

namespace lockstep {

class BareTexts {
 public:
  using Expression = Grammar::Expression;

  // All of these outlive this.
  BareTexts(Grammar& grammar, SchemaShapes& shapes, const BareNotation& notation)
      : grammar_(grammar), shapes_(shapes), notation_(notation) {}

  Result<Expression> text(const StringShape& strings);
  // kUnsupported if a required key cannot be written.
  Result<Expression> key(const KeySchema& key);
  Result<Expression> other_key(const Dfa& names);
  // As chat templates order them: regardless of the case of ASCII letters.
  static void sort(std::vector<KeySchema>& keys);

 private:
  Result<Dfa> texts();
  Expression in_quotes(Expression content);
  bool is_bare(const std::string& key) const;

  Grammar& grammar_;
  SchemaShapes& shapes_;
  const BareNotation& notation_;
  std::optional<Dfa> texts_;  // without a marker; made at its first use
};

}  // namespace lockstep

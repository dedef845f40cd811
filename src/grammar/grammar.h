// Grammar: which texts a model may write, as rules over bytes and special tokens. Front ends
// (json_schema.h, regex.h, ebnf.h) and tool-call formats all add to one Grammar; compile_grammar()
// makes of it what a Matcher (matcher.h) runs. A builder of one thread; what it made is immutable.
//
//   Grammar grammar;
//   auto call = grammar.sequence({grammar.token(151657),
//   grammar.literal("\n{\"name\":\"f\",\"arguments\":"),
//                                 TRY(add_json_schema(grammar, schema, {})).expression,
//                                 grammar.literal("}\n"), grammar.token(151658)});
//   auto compiled = TRY(compile_grammar(grammar, grammar.repeat(call, 1, kUnbounded)));
//
// A text is a sequence of bytes and tokens. A special token is one symbol, never its letters, and
// ordinary tokens are their bytes, however the text is cut into them. Whatever a rule says, a
// compiled grammar never leads into a dead end: alternatives that no text completes are dropped.
// Left recursion (`a ::= a "x"`) is refused when compiling.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "grammar/dfa.h"
#include "grammar/symbol_set.h"

namespace lockstep {

class CompiledGrammar;

inline constexpr uint32_t kUnbounded = UINT32_MAX;

// How a character of a set is written: as UTF-8, or inside a JSON string, where it may be escaped
// in every way that JSON has.
enum class CharacterCoding { kUtf8, kJsonString };

class Grammar {
 public:
  // Handles; they belong to the Grammar that made them.
  struct Expression {
    uint32_t index = 0;
    bool operator==(const Expression&) const = default;
  };
  struct Rule {
    uint32_t index = 0;
    bool operator==(const Rule&) const = default;
  };

  // One edge of an automaton: `label`, then state `target`.
  struct Edge {
    Expression label;
    uint32_t target;
  };
  struct State {
    bool is_accepting = false;
    std::vector<Edge> edges;
  };

  Grammar();

  Expression empty() const { return {0}; }  // the empty text
  Expression never() const { return {1}; }  // no text at all
  Expression literal(std::string_view bytes);
  Expression byte_range(uint8_t first, uint8_t last);
  // One special token; `id` is not looked at as text.
  Expression token(int32_t id);
  Expression sequence(const std::vector<Expression>& parts);
  Expression choice(const std::vector<Expression>& alternatives);
  // At least `min`, at most `max` times; kUnbounded for no end. Large numbers cost nothing.
  Expression repeat(Expression body, uint32_t min, uint32_t max);
  Expression optional(Expression body) { return repeat(body, 0, 1); }
  // State 0 is the start.
  Expression automaton(std::vector<State> states);
  // One character of `set`; surrogates are none.
  Expression character(const SymbolSet& set, CharacterCoding coding);
  // A text of characters, each coded; see dfa.h for how to join and subtract such automata.
  Expression text(const Dfa& code_points, CharacterCoding coding);
  // A text of bytes as an automaton over 0...255.
  Expression bytes(const Dfa& dfa);

  // A rule may be used before it is defined, and may use itself. Undefined ones match nothing.
  Rule declare(std::string name);
  void define(Rule rule, Expression body);
  Expression use(Rule rule);
  Expression named(std::string name, Expression body);  // declare, define, use

  // What compile_grammar() reads.
  enum class Kind : uint8_t {
    kEmpty,
    kNever,
    kBytes,
    kLiteral,
    kToken,
    kSequence,
    kChoice,
    kRepeat,
    kAutomaton,
    kRule
  };
  struct Node {
    Kind kind;
    uint32_t a = 0;  // kBytes: first; kToken: id; kRepeat: min; kAutomaton, kRule: index
    uint32_t b = 0;  // kBytes: last; kRepeat: max
    std::vector<Expression> parts;
    std::string bytes;
  };
  struct RuleBody {
    std::string name;
    Expression body{1};
    // One plain or escaped character of a JSON string, any of them: masks are made ahead for it.
    bool is_json_character = false;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<RuleBody>& rules() const { return rules_; }
  const std::vector<std::vector<State>>& automata() const { return automata_; }
  // False once a named limit of limits.h was passed; then handles mean nothing and compiling fails.
  bool within_limits() const { return part_count_ <= kGrammarPartsMax; }

 private:
  struct CharacterRule {
    SymbolSet set;
    CharacterCoding coding;
    Expression use;
  };

  Expression add(Node node);

  std::vector<Node> nodes_;
  std::vector<RuleBody> rules_;
  std::vector<std::vector<State>> automata_;
  std::vector<CharacterRule> characters_;
  size_t part_count_ = 0;
};

// kInvalidArgument for left recursion and for a grammar without any text; kExhausted for limits.
Result<std::shared_ptr<const CompiledGrammar>> compile_grammar(const Grammar& grammar,
                                                               Grammar::Expression root);

}  // namespace lockstep

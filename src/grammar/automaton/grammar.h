// Grammar: the texts a model may write, as rules over bytes and special tokens. Front ends
// (json_schema.h, regex.h, ebnf.h) and tool-call formats all add to one Grammar; compile_grammar()
// turns it into the form a Matcher (matcher.h) runs. A builder for one thread; the compiled form is
// immutable.
//
//   Grammar grammar;
//   auto call = grammar.sequence({grammar.token(151657),
//                                 grammar.literal("\n{\"name\":\"f\",\"arguments\":"),
//                                 TRY(add_json_schema(grammar, schema, {})).expression,
//                                 grammar.literal("}\n"), grammar.token(151658)});
//   auto compiled = TRY(compile_grammar(grammar, grammar.repeat(call, 1, kUnbounded)));
//
// A text is a sequence of bytes and tokens. A special token is one symbol, never its letters;
// ordinary tokens are their bytes, however the text is tokenized. A compiled grammar has no dead
// ends: alternatives that no text completes are dropped. Left recursion (`a ::= a "x"`) is refused
// when compiling.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "grammar/dfa/dfa.h"
#include "grammar/dfa/symbol_set.h"

namespace lockstep {

class CompiledGrammar;

inline constexpr uint32_t kUnbounded = UINT32_MAX;

// How a character is written: as UTF-8, or inside a JSON string, where it may be escaped in every
// way that JSON allows.
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

  explicit Grammar(WorkBudget budget = WorkBudget());

  Expression empty() const { return {0}; }  // the empty text
  Expression never() const { return {1}; }  // no text, not even the empty one
  Expression literal(std::string_view bytes);
  Expression byte_range(uint8_t first, uint8_t last);
  // One special token, regardless of its text.
  Expression token(int32_t id);
  Expression sequence(const std::vector<Expression>& parts);
  Expression choice(const std::vector<Expression>& alternatives);
  // `min` to `max` times; kUnbounded for no maximum. Large numbers cost nothing.
  Expression repeat(Expression body, uint32_t min, uint32_t max);
  Expression optional(Expression body) { return repeat(body, 0, 1); }
  // State 0 is the start.
  Expression automaton(std::vector<State> states);
  // One character of `set`; surrogates are ignored.
  Expression character(const SymbolSet& set, CharacterCoding coding);
  // A text of characters, each in `coding`; see dfa.h for joining and subtracting automata.
  Expression text(const Dfa& code_points, CharacterCoding coding);
  // A text of bytes as an automaton over 0...255.
  Expression bytes(const Dfa& dfa);

  // A rule may be used before it is defined, and may use itself. Undefined ones match nothing.
  Rule declare(std::string name);
  void define(Rule rule, Expression body);
  Expression use(Rule rule);
  Expression named(std::string name, Expression body);  // declare, define, use

  // For compile_grammar().
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
    // Any plain or escaped character of a JSON string, for which masks are prepared.
    bool is_json_character = false;
  };
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<RuleBody>& rules() const { return rules_; }
  const std::vector<std::vector<State>>& automata() const { return automata_; }
  // False once a limit of limits.h was exceeded; then handles are invalid and compiling fails.
  bool within_limits() const { return part_count_ <= kGrammarPartsMax && !budget_.is_over(); }
  // Shared by all front ends that add to this grammar.
  WorkBudget& budget() { return budget_; }
  const WorkBudget& budget() const { return budget_; }

 private:
  struct CharacterKey {
    CharacterCoding coding;
    SymbolSet set;
    bool operator==(const CharacterKey&) const = default;
  };
  struct HashOfCharacter {
    size_t operator()(const CharacterKey& key) const;
  };

  Expression add(Node node);

  std::vector<Node> nodes_;
  std::vector<RuleBody> rules_;
  std::vector<std::vector<State>> automata_;
  std::unordered_map<CharacterKey, Expression, HashOfCharacter> characters_;
  size_t part_count_ = 0;
  WorkBudget budget_;
};

// kInvalidArgument for left recursion and for a grammar without any text; kExhausted for limits.
Result<std::shared_ptr<const CompiledGrammar>> compile_grammar(const Grammar& grammar,
                                                               Grammar::Expression root);

}  // namespace lockstep

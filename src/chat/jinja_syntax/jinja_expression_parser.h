// Parses the expressions of a template, with Jinja's precedences. Used by the statement parser.
#pragma once

#include "base/result.h"
#include "chat/jinja_syntax/jinja_ast.h"
#include "chat/jinja_syntax/jinja_token_stream.h"

namespace lockstep {

class JinjaExpressionParser {
 public:
  using Parsed = Result<const JinjaExpression*>;

  explicit JinjaExpressionParser(JinjaTokenStream& stream) : stream_(stream) {}

  Parsed expression();                 // a if b else c, and all operators that bind tighter
  Parsed expression_without_choice();  // no "a if b else c"
  // One expression, or a tuple if commas follow.
  Parsed tuple(bool with_choice = true);
  // name(...)|name...: `subject` is the first filter's subject, null in filter blocks.
  Parsed filters(const JinjaExpression* subject, bool at_first_name);

 private:
  using Kind = JinjaExpressionKind;

  Parsed logical_or();
  Parsed logical_and();
  Parsed logical_not();
  Parsed comparison();
  Parsed sum();
  Parsed concatenation();
  Parsed product();
  Parsed power();
  Parsed unary(bool with_filters);
  Parsed primary();
  Parsed postfix(const JinjaExpression* subject);
  Parsed filters_and_tests(const JinjaExpression* subject);
  Parsed filter(const JinjaExpression* subject);
  Parsed test(const JinjaExpression* subject);
  Status test_operand(JinjaExpression& test);
  Parsed member(const JinjaExpression* subject);
  Parsed subscript(const JinjaExpression* subject);
  Parsed call(const JinjaExpression* subject);
  Parsed parenthesised();
  Parsed list();
  Parsed dict();
  Parsed literal();
  Parsed name();
  Status arguments(JinjaExpression& call);
  bool at_tuple_end() const;

  JinjaTokenStream& stream_;
};

}  // namespace lockstep

// Parses the expressions of a template, with Jinja's precedences. Used by the statement parser.
#pragma once

#include "base/result.h"
#include "chat/jinja_syntax/jinja_ast.h"
#include "chat/jinja_syntax/jinja_token_stream.h"

namespace lockstep::jinja {

class ExpressionParser {
 public:
  using Parsed = Result<const Expression*>;

  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  Parsed expression();                 // a if b else c, and all operators that bind tighter
  Parsed expression_without_choice();  // no "a if b else c"
  // One expression, or a tuple if commas follow.
  Parsed tuple(bool with_choice = true);
  // name(...)|name...: `subject` is the first filter's subject, null in filter blocks.
  Parsed filters(const Expression* subject, bool at_first_name);

 private:
  using Kind = ExpressionKind;

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
  Parsed postfix(const Expression* subject);
  Parsed filters_and_tests(const Expression* subject);
  Parsed filter(const Expression* subject);
  Parsed test(const Expression* subject);
  Status test_operand(Expression& test);
  Parsed member(const Expression* subject);
  Parsed subscript(const Expression* subject);
  Parsed call(const Expression* subject);
  Parsed parenthesised();
  Parsed list();
  Parsed dict();
  Parsed literal();
  Parsed name();
  Status arguments(Expression& call);
  bool at_tuple_end() const;

  TokenStream& stream_;
};

}  // namespace lockstep::jinja

// The tokens of a template, the position in them, and the program being built. Shared by the
// parsers of expressions and of statements.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/jinja_syntax/jinja_ast.h"
#include "chat/jinja_syntax/jinja_lexer.h"

namespace lockstep::jinja {

// Nesting of brackets, operators and blocks.
inline constexpr int kTemplateNestingMax = 150;

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, Program& program);

  const Token& current() const { return tokens_[at_]; }
  const Token& next();  // returns the current token and advances
  bool at(TokenKind kind) const { return current().kind == kind; }
  bool at_operator(std::string_view text) const;
  bool at_name(std::string_view text) const;
  bool next_is_operator(std::string_view text) const;  // the token after the current one
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  Status expect(TokenKind kind, std::string_view what);
  Status expect_operator(std::string_view text);
  Status expect_name(std::string_view text);
  Result<std::string> expect_any_name();
  Error unexpected(std::string_view wanted) const;

  Expression& add_expression(ExpressionKind kind, uint32_t line);
  Statement& add_statement(StatementKind kind, uint32_t line);
  uint32_t intern(const std::string& name);
  Program& program() { return program_; }

  // Counts one level of nesting during its lifetime.
  class Nesting {
   public:
    explicit Nesting(TokenStream& stream) : stream_(stream) { ++stream_.nesting_; }
    ~Nesting() { --stream_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Status check() const;

   private:
    TokenStream& stream_;
  };

 private:
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
  Program& program_;
  std::map<std::string, uint32_t> names_;
};

}  // namespace lockstep::jinja

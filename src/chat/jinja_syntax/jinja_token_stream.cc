#include "chat/jinja_syntax/jinja_token_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep::jinja {
namespace {

std::string described(const Token& token) {
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kPrintEnd:
      return "'}}'";
    case TokenKind::kText:
    case TokenKind::kPrintBegin:
    case TokenKind::kBlockBegin:
      return "text";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

TokenStream::TokenStream(std::vector<Token> tokens, Program& program)
    : tokens_(std::move(tokens)), program_(program) {}

const Token& TokenStream::next() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::at_operator(std::string_view text) const {
  return at(TokenKind::kOperator) && current().text == text;
}

bool TokenStream::at_name(std::string_view text) const {
  return at(TokenKind::kName) && current().text == text;
}

bool TokenStream::next_is_operator(std::string_view text) const {
  const Token& token = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  return token.kind == TokenKind::kOperator && token.text == text;
}

bool TokenStream::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  next();
  return true;
}

bool TokenStream::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  next();
  return true;
}

Status TokenStream::expect(TokenKind kind, std::string_view what) {
  if (!at(kind)) return unexpected(what);
  next();
  return Ok{};
}

Status TokenStream::expect_operator(std::string_view text) {
  if (!skip_operator(text)) return unexpected(fmt::format("'{}'", text));
  return Ok{};
}

Status TokenStream::expect_name(std::string_view text) {
  if (!skip_name(text)) return unexpected(fmt::format("'{}'", text));
  return Ok{};
}

Result<std::string> TokenStream::expect_any_name() {
  if (!at(TokenKind::kName)) return unexpected("a name");
  return next().text;
}

Error TokenStream::unexpected(std::string_view wanted) const {
  return template_syntax_error(current().line,
                               fmt::format("expected {}, found {}", wanted, described(current())));
}

Expression& TokenStream::add_expression(ExpressionKind kind, uint32_t line) {
  Expression& expression = program_.expressions.emplace_back();
  expression.kind = kind;
  expression.line = line;
  return expression;
}

Statement& TokenStream::add_statement(StatementKind kind, uint32_t line) {
  Statement& statement = program_.statements.emplace_back();
  statement.kind = kind;
  statement.line = line;
  return statement;
}

uint32_t TokenStream::intern(const std::string& name) {
  const auto [entry, added] =
      names_.try_emplace(name, static_cast<uint32_t>(program_.names.size()));
  if (added) program_.names.push_back(name);
  return entry->second;
}

Status TokenStream::Nesting::check() const {
  if (stream_.nesting_ <= kTemplateNestingMax) return Ok{};
  return template_syntax_error(
      stream_.current().line,
      fmt::format("more than {} levels are nested inside each other", kTemplateNestingMax));
}

}  // namespace lockstep::jinja

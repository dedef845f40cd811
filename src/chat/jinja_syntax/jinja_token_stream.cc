#include "chat/jinja_syntax/jinja_token_stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace lockstep {
namespace {

std::string described(const JinjaToken& token) {
  switch (token.kind) {
    case JinjaTokenKind::kEnd:
      return "the end of the template";
    case JinjaTokenKind::kBlockEnd:
      return "'%}'";
    case JinjaTokenKind::kPrintEnd:
      return "'}}'";
    case JinjaTokenKind::kText:
    case JinjaTokenKind::kPrintBegin:
    case JinjaTokenKind::kBlockBegin:
      return "text";
    default:
      return fmt::format("'{}'", token.text);
  }
}

}  // namespace

JinjaTokenStream::JinjaTokenStream(std::vector<JinjaToken> tokens, JinjaProgram& program)
    : tokens_(std::move(tokens)), program_(program) {}

const JinjaToken& JinjaTokenStream::next() {
  const JinjaToken& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool JinjaTokenStream::at_operator(std::string_view text) const {
  return at(JinjaTokenKind::kOperator) && current().text == text;
}

bool JinjaTokenStream::at_name(std::string_view text) const {
  return at(JinjaTokenKind::kName) && current().text == text;
}

bool JinjaTokenStream::next_is_operator(std::string_view text) const {
  const JinjaToken& token = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
  return token.kind == JinjaTokenKind::kOperator && token.text == text;
}

bool JinjaTokenStream::skip_operator(std::string_view text) {
  if (!at_operator(text)) return false;
  next();
  return true;
}

bool JinjaTokenStream::skip_name(std::string_view text) {
  if (!at_name(text)) return false;
  next();
  return true;
}

Status JinjaTokenStream::expect(JinjaTokenKind kind, std::string_view what) {
  if (!at(kind)) return unexpected(what);
  next();
  return Ok{};
}

Status JinjaTokenStream::expect_operator(std::string_view text) {
  if (!skip_operator(text)) return unexpected(fmt::format("'{}'", text));
  return Ok{};
}

Status JinjaTokenStream::expect_name(std::string_view text) {
  if (!skip_name(text)) return unexpected(fmt::format("'{}'", text));
  return Ok{};
}

Result<std::string> JinjaTokenStream::expect_any_name() {
  if (!at(JinjaTokenKind::kName)) return unexpected("a name");
  return next().text;
}

Error JinjaTokenStream::unexpected(std::string_view wanted) const {
  return template_syntax_error(current().line,
                               fmt::format("expected {}, found {}", wanted, described(current())));
}

JinjaExpression& JinjaTokenStream::add_expression(JinjaExpressionKind kind, uint32_t line) {
  JinjaExpression& expression = program_.expressions.emplace_back();
  expression.kind = kind;
  expression.line = line;
  return expression;
}

JinjaStatement& JinjaTokenStream::add_statement(JinjaStatementKind kind, uint32_t line) {
  JinjaStatement& statement = program_.statements.emplace_back();
  statement.kind = kind;
  statement.line = line;
  return statement;
}

uint32_t JinjaTokenStream::intern(const std::string& name) {
  const auto [entry, added] =
      names_.try_emplace(name, static_cast<uint32_t>(program_.names.size()));
  if (added) program_.names.push_back(name);
  return entry->second;
}

Status JinjaTokenStream::Nesting::check() const {
  if (stream_.nesting_ <= kTemplateNestingMax) return Ok{};
  return template_syntax_error(
      stream_.current().line,
      fmt::format("more than {} levels are nested inside each other", kTemplateNestingMax));
}

}  // namespace lockstep

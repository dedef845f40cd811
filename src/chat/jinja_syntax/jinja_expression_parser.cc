#include "chat/jinja_syntax/jinja_expression_parser.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

#include "base/double_chars.h"

namespace lockstep::jinja {
namespace {

struct ComparisonSign {
  std::string_view text;
  Comparison comparison;
};
constexpr ComparisonSign kComparisons[] = {
    {"==", Comparison::kEqual},     {"!=", Comparison::kUnequal}, {"<", Comparison::kLess},
    {"<=", Comparison::kLessEqual}, {">", Comparison::kGreater},  {">=", Comparison::kGreaterEqual},
};

struct ArithmeticSign {
  std::string_view text;
  Arithmetic operation;
};
constexpr ArithmeticSign kSums[] = {{"+", Arithmetic::kAdd}, {"-", Arithmetic::kSubtract}};
constexpr ArithmeticSign kProducts[] = {{"*", Arithmetic::kMultiply},
                                        {"/", Arithmetic::kDivide},
                                        {"//", Arithmetic::kFloor},
                                        {"%", Arithmetic::kModulo}};

template <size_t N>
const ArithmeticSign* current_arithmetic(const TokenStream& stream,
                                         const ArithmeticSign (&table)[N]) {
  for (const ArithmeticSign& entry : table) {
    if (stream.at_operator(entry.text)) return &entry;
  }
  return nullptr;
}

std::optional<Comparison> take_comparison(TokenStream& stream) {
  for (const ComparisonSign& entry : kComparisons) {
    if (stream.skip_operator(entry.text)) return entry.comparison;
  }
  if (stream.skip_name("in")) return Comparison::kIn;
  return std::nullopt;
}

}  // namespace

using Parsed = ExpressionParser::Parsed;

Parsed ExpressionParser::expression() {
  const TokenStream::Nesting nesting(stream_);
  TRY(nesting.check());
  const Expression* result = TRY(logical_or());
  while (stream_.at_name("if")) {
    const uint32_t line = stream_.next().line;
    const Expression* condition = TRY(logical_or());
    const Expression* otherwise = nullptr;
    if (stream_.skip_name("else")) otherwise = TRY(expression());
    Expression& choice = stream_.add_expression(Kind::kConditional, line);
    choice.children = {result, condition, otherwise};
    result = &choice;
  }
  return result;
}

Parsed ExpressionParser::expression_without_choice() {
  const TokenStream::Nesting nesting(stream_);
  TRY(nesting.check());
  return logical_or();
}

bool ExpressionParser::at_tuple_end() const {
  return stream_.at(TokenKind::kPrintEnd) || stream_.at(TokenKind::kBlockEnd) ||
         stream_.at_operator(")") || stream_.at_name("recursive");
}

Parsed ExpressionParser::tuple(bool with_choice) {
  const uint32_t line = stream_.current().line;
  std::vector<const Expression*> items;
  bool comma = false;
  while (!at_tuple_end()) {
    items.push_back(with_choice ? TRY(expression()) : TRY(expression_without_choice()));
    if (!stream_.skip_operator(",")) break;
    comma = true;
  }
  if (items.empty()) return stream_.unexpected("an expression");
  if (!comma) return items[0];
  Expression& result = stream_.add_expression(Kind::kTuple, line);
  result.children = std::move(items);
  return &result;
}

Parsed ExpressionParser::logical_or() {
  const Expression* first = TRY(logical_and());
  if (!stream_.at_name("or")) return first;
  Expression& result = stream_.add_expression(Kind::kOr, stream_.current().line);
  result.children.push_back(first);
  while (stream_.skip_name("or")) result.children.push_back(TRY(logical_and()));
  return &result;
}

Parsed ExpressionParser::logical_and() {
  const Expression* first = TRY(logical_not());
  if (!stream_.at_name("and")) return first;
  Expression& result = stream_.add_expression(Kind::kAnd, stream_.current().line);
  result.children.push_back(first);
  while (stream_.skip_name("and")) result.children.push_back(TRY(logical_not()));
  return &result;
}

Parsed ExpressionParser::logical_not() {
  if (!stream_.at_name("not")) return comparison();
  const TokenStream::Nesting nesting(stream_);
  TRY(nesting.check());
  Expression& result = stream_.add_expression(Kind::kNot, stream_.next().line);
  result.children.push_back(TRY(logical_not()));
  return &result;
}

Parsed ExpressionParser::comparison() {
  const Expression* first = TRY(sum());
  Expression* result = nullptr;
  for (;;) {
    const uint32_t line = stream_.current().line;
    auto comparison = take_comparison(stream_);
    if (!comparison && stream_.at_name("not")) {  // only "not in" is valid here
      stream_.next();
      TRY(stream_.expect_name("in"));
      comparison = Comparison::kNotIn;
    }
    if (!comparison) return result ? result : first;
    if (!result) {
      result = &stream_.add_expression(Kind::kCompare, line);
      result->children.push_back(first);
    }
    result->comparisons.push_back(*comparison);
    result->children.push_back(TRY(sum()));
  }
}

Parsed ExpressionParser::sum() {
  const Expression* result = TRY(concatenation());
  while (const ArithmeticSign* entry = current_arithmetic(stream_, kSums)) {
    Expression& added = stream_.add_expression(Kind::kArithmetic, stream_.next().line);
    added.operation = entry->operation;
    added.children = {result};
    added.children.push_back(TRY(concatenation()));
    result = &added;
  }
  return result;
}

Parsed ExpressionParser::concatenation() {
  const Expression* first = TRY(product());
  if (!stream_.at_operator("~")) return first;
  Expression& result = stream_.add_expression(Kind::kConcatenate, stream_.current().line);
  result.children.push_back(first);
  while (stream_.skip_operator("~")) result.children.push_back(TRY(product()));
  return &result;
}

Parsed ExpressionParser::product() {
  const Expression* result = TRY(power());
  while (const ArithmeticSign* entry = current_arithmetic(stream_, kProducts)) {
    Expression& added = stream_.add_expression(Kind::kArithmetic, stream_.next().line);
    added.operation = entry->operation;
    added.children = {result};
    added.children.push_back(TRY(power()));
    result = &added;
  }
  return result;
}

Parsed ExpressionParser::power() {
  const Expression* result = TRY(unary(true));
  while (stream_.at_operator("**")) {
    Expression& added = stream_.add_expression(Kind::kArithmetic, stream_.next().line);
    added.operation = Arithmetic::kPower;
    added.children = {result};
    added.children.push_back(TRY(unary(true)));
    result = &added;
  }
  return result;
}

Parsed ExpressionParser::unary(bool with_filters) {
  const Expression* result = nullptr;
  if (stream_.at_operator("-") || stream_.at_operator("+")) {
    const TokenStream::Nesting nesting(stream_);
    TRY(nesting.check());
    const bool negates = stream_.at_operator("-");
    Expression& sign =
        stream_.add_expression(negates ? Kind::kNegate : Kind::kPlus, stream_.next().line);
    sign.children.push_back(TRY(unary(false)));
    result = &sign;
  } else {
    result = TRY(primary());
  }
  result = TRY(postfix(result));
  return with_filters ? filters_and_tests(result) : Parsed(result);
}

Parsed ExpressionParser::primary() {
  switch (stream_.current().kind) {
    case TokenKind::kName:
      return name();
    case TokenKind::kString:
    case TokenKind::kInt:
    case TokenKind::kFloat:
      return literal();
    default:
      break;
  }
  if (stream_.at_operator("(")) return parenthesised();
  if (stream_.at_operator("[")) return list();
  if (stream_.at_operator("{")) return dict();
  return stream_.unexpected("an expression");
}

Parsed ExpressionParser::name() {
  const Token& token = stream_.next();
  const std::string& text = token.text;
  if (text == "none" || text == "None") return &stream_.add_expression(Kind::kNone, token.line);
  const bool truth = text == "true" || text == "True";
  if (truth || text == "false" || text == "False") {
    Expression& constant = stream_.add_expression(Kind::kBool, token.line);
    constant.integer = truth;
    return &constant;
  }
  Expression& variable = stream_.add_expression(Kind::kName, token.line);
  variable.text = MarkedText(text, false);
  variable.name = stream_.intern(text);
  return &variable;
}

Parsed ExpressionParser::literal() {
  const Token& token = stream_.next();
  if (token.kind == TokenKind::kString) {
    std::string text = token.text;
    while (stream_.at(TokenKind::kString)) text += stream_.next().text;
    Expression& constant = stream_.add_expression(Kind::kText, token.line);
    constant.text = MarkedText(std::move(text), false);
    return &constant;
  }
  const char* end = token.text.data() + token.text.size();
  if (token.kind == TokenKind::kInt) {
    Expression& constant = stream_.add_expression(Kind::kInt, token.line);
    if (std::from_chars(token.text.data(), end, constant.integer).ec == std::errc()) {
      return &constant;
    }
  } else {
    Expression& constant = stream_.add_expression(Kind::kFloat, token.line);
    if (double_from_chars(token.text.data(), end, constant.floating).ec == std::errc()) {
      return &constant;
    }
  }
  return template_syntax_error(token.line, fmt::format("the number {} is too large", token.text));
}

Parsed ExpressionParser::parenthesised() {
  const uint32_t line = stream_.next().line;
  if (stream_.skip_operator(")")) return &stream_.add_expression(Kind::kTuple, line);
  const Expression* inner = TRY(tuple());
  TRY(stream_.expect_operator(")"));
  return inner;
}

Parsed ExpressionParser::list() {
  Expression& result = stream_.add_expression(Kind::kList, stream_.next().line);
  while (!stream_.at_operator("]")) {
    if (!result.children.empty()) {
      TRY(stream_.expect_operator(","));
      if (stream_.at_operator("]")) break;
    }
    result.children.push_back(TRY(expression()));
  }
  stream_.next();
  return &result;
}

Parsed ExpressionParser::dict() {
  Expression& result = stream_.add_expression(Kind::kDict, stream_.next().line);
  while (!stream_.at_operator("}")) {
    if (!result.children.empty()) {
      TRY(stream_.expect_operator(","));
      if (stream_.at_operator("}")) break;
    }
    result.children.push_back(TRY(expression()));
    TRY(stream_.expect_operator(":"));
    result.children.push_back(TRY(expression()));
  }
  stream_.next();
  return &result;
}

Parsed ExpressionParser::postfix(const Expression* subject) {
  for (;;) {
    if (stream_.at_operator(".")) {
      subject = TRY(member(subject));
    } else if (stream_.at_operator("[")) {
      subject = TRY(subscript(subject));
    } else if (stream_.at_operator("(")) {
      subject = TRY(call(subject));
    } else {
      return subject;
    }
  }
}

Parsed ExpressionParser::filters_and_tests(const Expression* subject) {
  for (;;) {
    if (stream_.skip_operator("|")) {
      subject = TRY(filter(subject));
    } else if (stream_.at_name("is")) {
      subject = TRY(test(subject));
    } else if (stream_.at_operator("(")) {
      subject = TRY(call(subject));
    } else {
      return subject;
    }
  }
}

Parsed ExpressionParser::filters(const Expression* subject, bool at_first_name) {
  if (at_first_name) subject = TRY(filter(subject));
  while (stream_.skip_operator("|")) subject = TRY(filter(subject));
  return subject;
}

Parsed ExpressionParser::filter(const Expression* subject) {
  Expression& result = stream_.add_expression(Kind::kFilter, stream_.current().line);
  result.text = MarkedText(TRY(stream_.expect_any_name()), false);
  result.children.push_back(subject);
  if (stream_.at_operator("(")) TRY(arguments(result));
  return &result;
}

Parsed ExpressionParser::test(const Expression* subject) {
  const uint32_t line = stream_.next().line;
  const bool negated = stream_.skip_name("not");
  Expression& result = stream_.add_expression(Kind::kTest, line);
  result.text = MarkedText(TRY(stream_.expect_any_name()), false);
  result.children.push_back(subject);
  TRY(test_operand(result));
  if (!negated) return &result;
  Expression& inverted = stream_.add_expression(Kind::kNot, line);
  inverted.children.push_back(&result);
  return &inverted;
}

// `is name(...)` or `is name operand`; an operand may begin with the same tokens as in Jinja.
Status ExpressionParser::test_operand(Expression& test) {
  if (stream_.at_operator("(")) {
    return arguments(test);
  }
  const TokenKind kind = stream_.current().kind;
  const bool begins = kind == TokenKind::kName || kind == TokenKind::kString ||
                      kind == TokenKind::kInt || kind == TokenKind::kFloat ||
                      stream_.at_operator("[") || stream_.at_operator("{");
  if (!begins || stream_.at_name("else") || stream_.at_name("or") || stream_.at_name("and")) {
    return Ok{};
  }
  if (stream_.at_name("is")) return stream_.unexpected("no second test");
  const Expression* operand = TRY(primary());
  test.children.push_back(TRY(postfix(operand)));
  return Ok{};
}

Parsed ExpressionParser::member(const Expression* subject) {
  const uint32_t line = stream_.next().line;
  if (stream_.at(TokenKind::kInt)) {
    Expression& result = stream_.add_expression(Kind::kSubscript, line);
    result.children = {subject};
    result.children.push_back(TRY(literal()));
    return &result;
  }
  Expression& result = stream_.add_expression(Kind::kAttribute, line);
  result.text = MarkedText(TRY(stream_.expect_any_name()), false);
  result.children.push_back(subject);
  return &result;
}

Parsed ExpressionParser::subscript(const Expression* subject) {
  const uint32_t line = stream_.next().line;
  const Expression* parts[3] = {};
  bool slice = false;
  for (int part = 0; part < 3; ++part) {
    if (!stream_.at_operator(":") && !stream_.at_operator("]")) parts[part] = TRY(expression());
    if (part == 2 || !stream_.skip_operator(":")) break;
    slice = true;
  }
  if (!slice && !parts[0]) return stream_.unexpected("an expression");
  TRY(stream_.expect_operator("]"));
  Expression& result = stream_.add_expression(slice ? Kind::kSlice : Kind::kSubscript, line);
  result.children = {subject, parts[0]};
  if (slice) result.children = {subject, parts[0], parts[1], parts[2]};
  return &result;
}

Parsed ExpressionParser::call(const Expression* subject) {
  Expression& result = stream_.add_expression(Kind::kCall, stream_.current().line);
  result.children.push_back(subject);
  TRY(arguments(result));
  return &result;
}

Status ExpressionParser::arguments(Expression& call) {
  TRY(stream_.expect_operator("("));
  bool first = true;
  while (!stream_.at_operator(")")) {
    if (!first) {
      TRY(stream_.expect_operator(","));
      if (stream_.at_operator(")")) break;
    }
    first = false;
    if (stream_.at(TokenKind::kName) && stream_.next_is_operator("=")) {
      const std::string keyword = stream_.next().text;
      stream_.next();
      call.keywords.emplace_back(keyword, TRY(expression()));
    } else if (!call.keywords.empty()) {
      return stream_.unexpected("a keyword argument");
    } else {
      call.children.push_back(TRY(expression()));
    }
  }
  stream_.next();
  return Ok{};
}

}  // namespace lockstep::jinja

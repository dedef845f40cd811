#include "chat/jinja_syntax/jinja_expression_parser.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>

namespace lockstep {
namespace {

struct Comparison {
  std::string_view text;
  JinjaComparison comparison;
};
constexpr Comparison kComparisons[] = {
    {"==", JinjaComparison::kEqual},  {"!=", JinjaComparison::kUnequal},
    {"<", JinjaComparison::kLess},    {"<=", JinjaComparison::kLessEqual},
    {">", JinjaComparison::kGreater}, {">=", JinjaComparison::kGreaterEqual},
};

struct Arithmetic {
  std::string_view text;
  JinjaArithmetic operation;
};
constexpr Arithmetic kSums[] = {{"+", JinjaArithmetic::kAdd}, {"-", JinjaArithmetic::kSubtract}};
constexpr Arithmetic kProducts[] = {{"*", JinjaArithmetic::kMultiply},
                                    {"/", JinjaArithmetic::kDivide},
                                    {"//", JinjaArithmetic::kFloor},
                                    {"%", JinjaArithmetic::kModulo}};

template <size_t N>
const Arithmetic* current_arithmetic(const JinjaTokenStream& stream, const Arithmetic (&table)[N]) {
  for (const Arithmetic& entry : table) {
    if (stream.at_operator(entry.text)) return &entry;
  }
  return nullptr;
}

std::optional<JinjaComparison> take_comparison(JinjaTokenStream& stream) {
  for (const Comparison& entry : kComparisons) {
    if (stream.skip_operator(entry.text)) return entry.comparison;
  }
  if (stream.skip_name("in")) return JinjaComparison::kIn;
  return std::nullopt;
}

}  // namespace

using Parsed = JinjaExpressionParser::Parsed;

Parsed JinjaExpressionParser::expression() {
  const JinjaTokenStream::Nesting nesting(stream_);
  TRY(nesting.check());
  const JinjaExpression* result = TRY(logical_or());
  while (stream_.at_name("if")) {
    const uint32_t line = stream_.next().line;
    const JinjaExpression* condition = TRY(logical_or());
    const JinjaExpression* otherwise = nullptr;
    if (stream_.skip_name("else")) otherwise = TRY(expression());
    JinjaExpression& choice = stream_.add_expression(Kind::kConditional, line);
    choice.children = {result, condition, otherwise};
    result = &choice;
  }
  return result;
}

Parsed JinjaExpressionParser::expression_without_choice() {
  const JinjaTokenStream::Nesting nesting(stream_);
  TRY(nesting.check());
  return logical_or();
}

bool JinjaExpressionParser::at_tuple_end() const {
  return stream_.at(JinjaTokenKind::kPrintEnd) || stream_.at(JinjaTokenKind::kBlockEnd) ||
         stream_.at_operator(")") || stream_.at_name("recursive");
}

Parsed JinjaExpressionParser::tuple(bool with_choice) {
  const uint32_t line = stream_.current().line;
  std::vector<const JinjaExpression*> items;
  bool comma = false;
  while (!at_tuple_end()) {
    items.push_back(with_choice ? TRY(expression()) : TRY(expression_without_choice()));
    if (!stream_.skip_operator(",")) break;
    comma = true;
  }
  if (items.empty()) return stream_.unexpected("an expression");
  if (!comma) return items[0];
  JinjaExpression& result = stream_.add_expression(Kind::kTuple, line);
  result.children = std::move(items);
  return &result;
}

Parsed JinjaExpressionParser::logical_or() {
  const JinjaExpression* first = TRY(logical_and());
  if (!stream_.at_name("or")) return first;
  JinjaExpression& result = stream_.add_expression(Kind::kOr, stream_.current().line);
  result.children.push_back(first);
  while (stream_.skip_name("or")) result.children.push_back(TRY(logical_and()));
  return &result;
}

Parsed JinjaExpressionParser::logical_and() {
  const JinjaExpression* first = TRY(logical_not());
  if (!stream_.at_name("and")) return first;
  JinjaExpression& result = stream_.add_expression(Kind::kAnd, stream_.current().line);
  result.children.push_back(first);
  while (stream_.skip_name("and")) result.children.push_back(TRY(logical_not()));
  return &result;
}

Parsed JinjaExpressionParser::logical_not() {
  if (!stream_.at_name("not")) return comparison();
  const JinjaTokenStream::Nesting nesting(stream_);
  TRY(nesting.check());
  JinjaExpression& result = stream_.add_expression(Kind::kNot, stream_.next().line);
  result.children.push_back(TRY(logical_not()));
  return &result;
}

Parsed JinjaExpressionParser::comparison() {
  const JinjaExpression* first = TRY(sum());
  JinjaExpression* result = nullptr;
  for (;;) {
    const uint32_t line = stream_.current().line;
    auto comparison = take_comparison(stream_);
    if (!comparison && stream_.at_name("not")) {  // only "not in" is valid here
      stream_.next();
      TRY(stream_.expect_name("in"));
      comparison = JinjaComparison::kNotIn;
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

Parsed JinjaExpressionParser::sum() {
  const JinjaExpression* result = TRY(concatenation());
  while (const Arithmetic* entry = current_arithmetic(stream_, kSums)) {
    JinjaExpression& added = stream_.add_expression(Kind::kArithmetic, stream_.next().line);
    added.operation = entry->operation;
    added.children = {result};
    added.children.push_back(TRY(concatenation()));
    result = &added;
  }
  return result;
}

Parsed JinjaExpressionParser::concatenation() {
  const JinjaExpression* first = TRY(product());
  if (!stream_.at_operator("~")) return first;
  JinjaExpression& result = stream_.add_expression(Kind::kConcatenate, stream_.current().line);
  result.children.push_back(first);
  while (stream_.skip_operator("~")) result.children.push_back(TRY(product()));
  return &result;
}

Parsed JinjaExpressionParser::product() {
  const JinjaExpression* result = TRY(power());
  while (const Arithmetic* entry = current_arithmetic(stream_, kProducts)) {
    JinjaExpression& added = stream_.add_expression(Kind::kArithmetic, stream_.next().line);
    added.operation = entry->operation;
    added.children = {result};
    added.children.push_back(TRY(power()));
    result = &added;
  }
  return result;
}

Parsed JinjaExpressionParser::power() {
  const JinjaExpression* result = TRY(unary(true));
  while (stream_.at_operator("**")) {
    JinjaExpression& added = stream_.add_expression(Kind::kArithmetic, stream_.next().line);
    added.operation = JinjaArithmetic::kPower;
    added.children = {result};
    added.children.push_back(TRY(unary(true)));
    result = &added;
  }
  return result;
}

Parsed JinjaExpressionParser::unary(bool with_filters) {
  const JinjaExpression* result = nullptr;
  if (stream_.at_operator("-") || stream_.at_operator("+")) {
    const JinjaTokenStream::Nesting nesting(stream_);
    TRY(nesting.check());
    const bool negates = stream_.at_operator("-");
    JinjaExpression& sign =
        stream_.add_expression(negates ? Kind::kNegate : Kind::kPlus, stream_.next().line);
    sign.children.push_back(TRY(unary(false)));
    result = &sign;
  } else {
    result = TRY(primary());
  }
  result = TRY(postfix(result));
  return with_filters ? filters_and_tests(result) : Parsed(result);
}

Parsed JinjaExpressionParser::primary() {
  switch (stream_.current().kind) {
    case JinjaTokenKind::kName:
      return name();
    case JinjaTokenKind::kString:
    case JinjaTokenKind::kInt:
    case JinjaTokenKind::kFloat:
      return literal();
    default:
      break;
  }
  if (stream_.at_operator("(")) return parenthesised();
  if (stream_.at_operator("[")) return list();
  if (stream_.at_operator("{")) return dict();
  return stream_.unexpected("an expression");
}

Parsed JinjaExpressionParser::name() {
  const JinjaToken& token = stream_.next();
  const std::string& text = token.text;
  if (text == "none" || text == "None") return &stream_.add_expression(Kind::kNone, token.line);
  const bool truth = text == "true" || text == "True";
  if (truth || text == "false" || text == "False") {
    JinjaExpression& constant = stream_.add_expression(Kind::kBool, token.line);
    constant.integer = truth;
    return &constant;
  }
  JinjaExpression& variable = stream_.add_expression(Kind::kName, token.line);
  variable.text = MarkedText(text, false);
  variable.name = stream_.intern(text);
  return &variable;
}

Parsed JinjaExpressionParser::literal() {
  const JinjaToken& token = stream_.next();
  if (token.kind == JinjaTokenKind::kString) {
    std::string text = token.text;
    while (stream_.at(JinjaTokenKind::kString)) text += stream_.next().text;
    JinjaExpression& constant = stream_.add_expression(Kind::kText, token.line);
    constant.text = MarkedText(std::move(text), false);
    return &constant;
  }
  const char* end = token.text.data() + token.text.size();
  if (token.kind == JinjaTokenKind::kInt) {
    JinjaExpression& constant = stream_.add_expression(Kind::kInt, token.line);
    if (std::from_chars(token.text.data(), end, constant.integer).ec == std::errc()) {
      return &constant;
    }
  } else {
    JinjaExpression& constant = stream_.add_expression(Kind::kFloat, token.line);
    if (std::from_chars(token.text.data(), end, constant.floating).ec == std::errc()) {
      return &constant;
    }
  }
  return template_syntax_error(token.line, fmt::format("the number {} is too large", token.text));
}

Parsed JinjaExpressionParser::parenthesised() {
  const uint32_t line = stream_.next().line;
  if (stream_.skip_operator(")")) return &stream_.add_expression(Kind::kTuple, line);
  const JinjaExpression* inner = TRY(tuple());
  TRY(stream_.expect_operator(")"));
  return inner;
}

Parsed JinjaExpressionParser::list() {
  JinjaExpression& result = stream_.add_expression(Kind::kList, stream_.next().line);
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

Parsed JinjaExpressionParser::dict() {
  JinjaExpression& result = stream_.add_expression(Kind::kDict, stream_.next().line);
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

Parsed JinjaExpressionParser::postfix(const JinjaExpression* subject) {
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

Parsed JinjaExpressionParser::filters_and_tests(const JinjaExpression* subject) {
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

Parsed JinjaExpressionParser::filters(const JinjaExpression* subject, bool at_first_name) {
  if (at_first_name) subject = TRY(filter(subject));
  while (stream_.skip_operator("|")) subject = TRY(filter(subject));
  return subject;
}

Parsed JinjaExpressionParser::filter(const JinjaExpression* subject) {
  JinjaExpression& result = stream_.add_expression(Kind::kFilter, stream_.current().line);
  result.text = MarkedText(TRY(stream_.expect_any_name()), false);
  result.children.push_back(subject);
  if (stream_.at_operator("(")) TRY(arguments(result));
  return &result;
}

Parsed JinjaExpressionParser::test(const JinjaExpression* subject) {
  const uint32_t line = stream_.next().line;
  const bool negated = stream_.skip_name("not");
  JinjaExpression& result = stream_.add_expression(Kind::kTest, line);
  result.text = MarkedText(TRY(stream_.expect_any_name()), false);
  result.children.push_back(subject);
  TRY(test_operand(result));
  if (!negated) return &result;
  JinjaExpression& inverted = stream_.add_expression(Kind::kNot, line);
  inverted.children.push_back(&result);
  return &inverted;
}

// `is name(...)` or `is name operand`; an operand may begin with the same tokens as in Jinja.
Status JinjaExpressionParser::test_operand(JinjaExpression& test) {
  if (stream_.at_operator("(")) {
    return arguments(test);
  }
  const JinjaTokenKind kind = stream_.current().kind;
  const bool begins = kind == JinjaTokenKind::kName || kind == JinjaTokenKind::kString ||
                      kind == JinjaTokenKind::kInt || kind == JinjaTokenKind::kFloat ||
                      stream_.at_operator("[") || stream_.at_operator("{");
  if (!begins || stream_.at_name("else") || stream_.at_name("or") || stream_.at_name("and")) {
    return Ok{};
  }
  if (stream_.at_name("is")) return stream_.unexpected("no second test");
  const JinjaExpression* operand = TRY(primary());
  test.children.push_back(TRY(postfix(operand)));
  return Ok{};
}

Parsed JinjaExpressionParser::member(const JinjaExpression* subject) {
  const uint32_t line = stream_.next().line;
  if (stream_.at(JinjaTokenKind::kInt)) {
    JinjaExpression& result = stream_.add_expression(Kind::kSubscript, line);
    result.children = {subject};
    result.children.push_back(TRY(literal()));
    return &result;
  }
  JinjaExpression& result = stream_.add_expression(Kind::kAttribute, line);
  result.text = MarkedText(TRY(stream_.expect_any_name()), false);
  result.children.push_back(subject);
  return &result;
}

Parsed JinjaExpressionParser::subscript(const JinjaExpression* subject) {
  const uint32_t line = stream_.next().line;
  const JinjaExpression* parts[3] = {};
  bool slice = false;
  for (int part = 0; part < 3; ++part) {
    if (!stream_.at_operator(":") && !stream_.at_operator("]")) parts[part] = TRY(expression());
    if (part == 2 || !stream_.skip_operator(":")) break;
    slice = true;
  }
  if (!slice && !parts[0]) return stream_.unexpected("an expression");
  TRY(stream_.expect_operator("]"));
  JinjaExpression& result = stream_.add_expression(slice ? Kind::kSlice : Kind::kSubscript, line);
  result.children = {subject, parts[0]};
  if (slice) result.children = {subject, parts[0], parts[1], parts[2]};
  return &result;
}

Parsed JinjaExpressionParser::call(const JinjaExpression* subject) {
  JinjaExpression& result = stream_.add_expression(Kind::kCall, stream_.current().line);
  result.children.push_back(subject);
  TRY(arguments(result));
  return &result;
}

Status JinjaExpressionParser::arguments(JinjaExpression& call) {
  TRY(stream_.expect_operator("("));
  bool first = true;
  while (!stream_.at_operator(")")) {
    if (!first) {
      TRY(stream_.expect_operator(","));
      if (stream_.at_operator(")")) break;
    }
    first = false;
    if (stream_.at(JinjaTokenKind::kName) && stream_.next_is_operator("=")) {
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

}  // namespace lockstep

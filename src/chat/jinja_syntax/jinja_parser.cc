#include "chat/jinja_syntax/jinja_parser.h"

#include <fmt/core.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "chat/jinja_syntax/jinja_expression_parser.h"
#include "chat/jinja_syntax/jinja_token_stream.h"

namespace lockstep::jinja {
namespace {

using ParsedStatement = Result<const Statement*>;

class StatementParser {
 public:
  explicit StatementParser(TokenStream& stream) : stream_(stream), expressions_(stream) {}

  // Parses up to one of the tags `ends`, whose name is then the current token; without `ends`: to
  // the end.
  Result<Block> block(std::initializer_list<std::string_view> ends) {
    const TokenStream::Nesting nesting(stream_);
    TRY(nesting.check());
    Block statements;
    for (;;) {
      const uint32_t line = stream_.current().line;
      if (stream_.at(TokenKind::kEnd)) {
        if (ends.size() == 0) return statements;
        return stream_.unexpected(fmt::format("'{}'", *(ends.end() - 1)));
      }
      if (stream_.at(TokenKind::kText)) {
        Statement& text = stream_.add_statement(StatementKind::kText, line);
        text.text = MarkedText(stream_.next().text, false);
        statements.push_back(&text);
      } else if (stream_.at(TokenKind::kPrintBegin)) {
        stream_.next();
        Statement& print = stream_.add_statement(StatementKind::kPrint, line);
        print.expression = TRY(expressions_.tuple());
        TRY(stream_.expect(TokenKind::kPrintEnd, "'}}'"));
        statements.push_back(&print);
      } else {
        TRY(stream_.expect(TokenKind::kBlockBegin, "a tag"));
        if (std::any_of(ends.begin(), ends.end(),
                        [this](std::string_view end) { return stream_.at_name(end); })) {
          return statements;
        }
        statements.push_back(TRY(statement()));
        TRY(end_of_tag());
      }
    }
  }

 private:
  Status end_of_tag() { return stream_.expect(TokenKind::kBlockEnd, "'%}'"); }

  // The rest of the opening tag, the body, and the name of the closing tag.
  Result<Block> body_until(std::string_view end) {
    TRY(end_of_tag());
    Block body = TRY(block({end}));
    stream_.next();
    return body;
  }

  ParsedStatement statement() {
    const uint32_t line = stream_.current().line;
    const std::string tag = TRY(stream_.expect_any_name());
    if (tag == "if") return if_statement(line);
    if (tag == "for") return for_statement(line);
    if (tag == "set") return set_statement(line);
    if (tag == "macro") return macro_statement(line);
    if (tag == "filter") return filter_statement(line);
    if (tag == "generation") return generation_statement(line);
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) return template_syntax_error(line, fmt::format("'{}' outside a loop", tag));
      return &stream_.add_statement(
          tag == "break" ? StatementKind::kBreak : StatementKind::kContinue, line);
    }
    return template_syntax_error(line, fmt::format("unknown tag '{}'", tag));
  }

  ParsedStatement if_statement(uint32_t line) {
    Statement& result = stream_.add_statement(StatementKind::kIf, line);
    for (;;) {
      const Expression* condition = TRY(expressions_.tuple(false));
      TRY(end_of_tag());
      Block body = TRY(block({"elif", "else", "endif"}));
      result.branches.push_back({condition, std::move(body)});
      if (stream_.skip_name("elif")) continue;
      if (stream_.skip_name("else")) {
        Block last = TRY(body_until("endif"));
        result.branches.push_back({nullptr, std::move(last)});
      } else {
        stream_.next();
      }
      return &result;
    }
  }

  ParsedStatement for_statement(uint32_t line) {
    Statement& result = stream_.add_statement(StatementKind::kFor, line);
    result.name = stream_.intern("loop");
    result.target = TRY(target(false));
    TRY(stream_.expect_name("in"));
    result.expression = TRY(expressions_.tuple(false));
    if (stream_.skip_name("if")) result.condition = TRY(expressions_.expression());
    if (stream_.at_name("recursive")) return stream_.unexpected("no recursive loop");
    TRY(end_of_tag());
    ++loops_;
    result.body = TRY(block({"else", "endfor"}));
    --loops_;
    if (stream_.skip_name("else")) {
      result.otherwise = TRY(body_until("endfor"));
    } else {
      stream_.next();
    }
    return &result;
  }

  ParsedStatement set_statement(uint32_t line) {
    Statement& result = stream_.add_statement(StatementKind::kSet, line);
    result.target = TRY(target(true));
    if (stream_.skip_operator("=")) {
      result.expression = TRY(expressions_.tuple());
      return &result;
    }
    result.kind = StatementKind::kSetBlock;
    result.expression = TRY(expressions_.filters(nullptr, false));
    result.body = TRY(body_until("endset"));
    return &result;
  }

  // A body with its own frame: a break inside cannot leave it.
  Result<Block> framed_body(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block body = TRY(body_until(end));
    loops_ = loops;
    return body;
  }

  ParsedStatement macro_statement(uint32_t line) {
    Statement& result = stream_.add_statement(StatementKind::kMacro, line);
    const std::string name = TRY(stream_.expect_any_name());
    result.text = MarkedText(name, false);
    result.name = stream_.intern(name);
    TRY(stream_.expect_operator("("));
    while (!stream_.at_operator(")")) {
      if (!result.parameters.empty()) TRY(stream_.expect_operator(","));
      const uint32_t parameter = stream_.intern(TRY(stream_.expect_any_name()));
      const Expression* initial = nullptr;
      if (stream_.skip_operator("=")) {
        initial = TRY(expressions_.expression());
      } else if (!result.parameters.empty() && result.parameters.back().initial) {
        return stream_.unexpected("a default for the parameter");
      }
      result.parameters.push_back({parameter, initial});
    }
    stream_.next();
    result.body = TRY(framed_body("endmacro"));
    return &result;
  }

  ParsedStatement filter_statement(uint32_t line) {
    Statement& result = stream_.add_statement(StatementKind::kFilterBlock, line);
    result.expression = TRY(expressions_.filters(nullptr, true));
    result.body = TRY(body_until("endfilter"));
    return &result;
  }

  ParsedStatement generation_statement(uint32_t line) {
    Statement& result = stream_.add_statement(StatementKind::kGeneration, line);
    result.body = TRY(framed_body("endgeneration"));
    return &result;
  }

  // a | ns.a | a, b | (a, b), c
  Result<Target> target(bool with_namespace) {
    Target first = TRY(single_target(with_namespace));
    if (!stream_.at_operator(",")) return first;
    Target result;
    result.parts.push_back(std::move(first));
    while (stream_.skip_operator(",")) {
      if (stream_.at_name("in") || stream_.at_operator("=") || stream_.at_operator(")")) break;
      result.parts.push_back(TRY(single_target(with_namespace)));
    }
    return result;
  }

  Result<Target> single_target(bool with_namespace) {
    const TokenStream::Nesting nesting(stream_);
    TRY(nesting.check());
    if (stream_.skip_operator("(")) {
      Target inner = TRY(target(with_namespace));
      TRY(stream_.expect_operator(")"));
      return inner;
    }
    Target result;
    result.name = stream_.intern(TRY(stream_.expect_any_name()));
    if (with_namespace && stream_.skip_operator(".")) {
      result.attribute = TRY(stream_.expect_any_name());
    }
    return result;
  }

  TokenStream& stream_;
  ExpressionParser expressions_;
  int loops_ = 0;
};

}  // namespace

Result<std::unique_ptr<const Program>> parse_template(std::string_view source) {
  auto program = std::make_unique<Program>();
  TokenStream stream(TRY(lex_template(source)), *program);
  program->body = TRY(StatementParser(stream).block({}));
  return std::unique_ptr<const Program>(std::move(program));
}

}  // namespace lockstep::jinja

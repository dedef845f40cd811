// The parsed template: statements and expressions as plain nodes with a kind, owned by the
// Program, immutable after parsing, so that any number of renderings may share one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "chat/text/marked_text.h"

namespace lockstep::jinja {

enum class ExpressionKind : uint8_t {
  kNone,
  kBool,         // integer
  kInt,          // integer
  kFloat,        // floating
  kText,         // text
  kName,         // text, name
  kList,         // children
  kTuple,        // children
  kDict,         // children: key, value, key, value...
  kAttribute,    // children[0].text
  kSubscript,    // children[0][children[1]]
  kSlice,        // children[0][children[1]:children[2]:children[3]]; null if omitted
  kCall,         // children[0](children[1]..., keywords)
  kFilter,       // children[0] | text(children[1]..., keywords); children[0] null in filter blocks
  kTest,         // children[0] is text(children[1]...)
  kNegate,       // -children[0]
  kPlus,         // +children[0]
  kNot,          // not children[0]
  kAnd,          // children
  kOr,           // children
  kConcatenate,  // children joined by ~
  kArithmetic,   // children[0] operation children[1]
  kCompare,      // children[0] comparisons[0] children[1] comparisons[1] children[2]...
  kConditional,  // children[0] if children[1] else children[2], which may be null
};

enum class Arithmetic : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloor, kModulo, kPower };
enum class Comparison : uint8_t {
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct Expression {
  ExpressionKind kind;
  uint32_t line;
  uint32_t name = 0;  // an index of Program::names
  Arithmetic operation = Arithmetic::kAdd;
  int64_t integer = 0;
  double floating = 0;
  MarkedText text;
  std::vector<const Expression*> children;
  std::vector<Comparison> comparisons;
  std::vector<std::pair<std::string, const Expression*>> keywords;
};

enum class StatementKind : uint8_t {
  kText,         // text, printed as it is
  kPrint,        // expression
  kIf,           // branches
  kFor,          // target, expression, condition, body; otherwise
  kSet,          // target = expression
  kSetBlock,     // target = body through the filters of expression, which may be null
  kMacro,        // name, parameters, body
  kFilterBlock,  // body through the filters of expression
  kGeneration,   // body
  kBreak,
  kContinue,
};

// The target of a set or for: a name, ns.attribute, or several of these.
struct Target {
  uint32_t name = 0;
  std::string attribute;  // of a namespace; empty: the name itself
  std::vector<Target> parts;
};

struct Statement;
using Block = std::vector<const Statement*>;

struct Branch {
  const Expression* condition;  // null: else
  Block body;
};

struct Parameter {
  uint32_t name;
  const Expression* initial;  // null: none
};

struct Statement {
  StatementKind kind;
  uint32_t line;
  MarkedText text;
  const Expression* expression = nullptr;
  const Expression* condition = nullptr;
  Target target;
  Block body;
  Block otherwise;
  std::vector<Branch> branches;
  uint32_t name = 0;
  std::vector<Parameter> parameters;
};

struct Program {
  Block body;
  std::vector<std::string> names;
  std::deque<Expression> expressions;
  std::deque<Statement> statements;
};

}  // namespace lockstep::jinja

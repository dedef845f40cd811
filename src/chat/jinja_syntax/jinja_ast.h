// The parsed template: statements and expressions as plain nodes with a kind, owned by the
// JinjaProgram, immutable after parsing, so that any number of renderings may share one.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "chat/text/marked_text.h"

namespace lockstep {

enum class JinjaExpressionKind : uint8_t {
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

enum class JinjaArithmetic : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloor,
  kModulo,
  kPower
};
enum class JinjaComparison : uint8_t {
  kEqual,
  kUnequal,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

struct JinjaExpression {
  JinjaExpressionKind kind;
  uint32_t line;
  uint32_t name = 0;  // an index of JinjaProgram::names
  JinjaArithmetic operation = JinjaArithmetic::kAdd;
  int64_t integer = 0;
  double floating = 0;
  MarkedText text;
  std::vector<const JinjaExpression*> children;
  std::vector<JinjaComparison> comparisons;
  std::vector<std::pair<std::string, const JinjaExpression*>> keywords;
};

enum class JinjaStatementKind : uint8_t {
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
struct JinjaTarget {
  uint32_t name = 0;
  std::string attribute;  // of a namespace; empty: the name itself
  std::vector<JinjaTarget> parts;
};

struct JinjaStatement;
using JinjaBlock = std::vector<const JinjaStatement*>;

struct JinjaBranch {
  const JinjaExpression* condition;  // null: else
  JinjaBlock body;
};

struct JinjaParameter {
  uint32_t name;
  const JinjaExpression* initial;  // null: none
};

struct JinjaStatement {
  JinjaStatementKind kind;
  uint32_t line;
  MarkedText text;
  const JinjaExpression* expression = nullptr;
  const JinjaExpression* condition = nullptr;
  JinjaTarget target;
  JinjaBlock body;
  JinjaBlock otherwise;
  std::vector<JinjaBranch> branches;
  uint32_t name = 0;
  std::vector<JinjaParameter> parameters;
};

struct JinjaProgram {
  JinjaBlock body;
  std::vector<std::string> names;
  std::deque<JinjaExpression> expressions;
  std::deque<JinjaStatement> statements;
};

}  // namespace lockstep

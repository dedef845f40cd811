// Runs a parsed template with the variables of one request. One object per rendering; used by
// ChatTemplate. Steps, memory and recursion of a template are all limited.
#pragma once

#include <ctime>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/jinja/jinja_methods.h"
#include "chat/jinja/jinja_value.h"
#include "chat/jinja_syntax/jinja_ast.h"

namespace lockstep {

// Nesting of statements, expressions and macro calls while rendering.
inline constexpr int kTemplateDepthMax = 600;

struct JinjaScope {
  JinjaScope* parent = nullptr;
  bool is_captured = false;  // a macro refers to it, so it is not reused
  std::vector<std::pair<uint32_t, JinjaValue>> variables;

  // Here or in a parent; adds the number of variables and scopes examined to `looks`.
  const JinjaValue* find(uint32_t name, size_t& looks) const;
  void set(uint32_t name, const JinjaValue& value);
};

class JinjaInterpreter {
 public:
  JinjaInterpreter(const JinjaProgram& program, const std::tm& now, JinjaLimits limits);

  JinjaHeap& heap() { return heap_; }
  void set_variable(uint32_t name, const JinjaValue& value) { root_.set(name, value); }

  // kInvalidArgument if the template called raise_exception, with only its message; otherwise one
  // sentence with the line.
  Result<MarkedText> render();

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class ScopeGuard;
  class DepthGuard;

  // Statements (jinja_interpreter_statements.cc).
  Result<Flow> run(const JinjaBlock& block);
  Result<Flow> run(const JinjaStatement& statement);
  Result<Flow> run_if(const JinjaStatement& statement);
  Result<Flow> run_for(const JinjaStatement& statement);
  Result<std::vector<JinjaValue>> loop_items(const JinjaStatement& statement);
  Status run_set_block(const JinjaStatement& statement);
  // Runs the body in its own scope and returns its output as a value.
  Result<JinjaValue> captured(const JinjaBlock& body);
  Status assign(const JinjaTarget& target, const JinjaValue& value);
  Status print(const JinjaValue& value);

  // Expressions (jinja_interpreter_expressions.cc).
  Result<JinjaValue> evaluate(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_name(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_items(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_dict(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_access(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_slice(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_logic(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_concatenation(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_operation(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_comparison(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_conditional(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_test(const JinjaExpression& expression);
  Result<JinjaValue> evaluate_call(const JinjaExpression& expression);
  // A filter after the filters of its subject; `subject` replaces a null one.
  Result<JinjaValue> evaluate_filter(const JinjaExpression& expression, const JinjaValue* subject);
  Result<JinjaArguments> evaluate_arguments(const JinjaExpression& expression);
  Result<JinjaValue> call(const JinjaValue& callable, const JinjaArguments& arguments);
  Result<JinjaValue> call_macro(const JinjaMacro& macro, const JinjaArguments& arguments);
  Result<JinjaValue> call_function(JinjaFunction function, const JinjaArguments& arguments);
  Result<JinjaValue> make_namespace(const JinjaArguments& arguments);
  Result<JinjaValue> make_range(const JinjaArguments& arguments);
  Result<JinjaValue> format_now(const JinjaArguments& arguments);

  // Variables visible in the scope; charges one step per kLooksOfAStep variables examined.
  static constexpr size_t kLooksOfAStep = 64;
  const JinjaValue* find_variable(uint32_t name);
  void set_here(uint32_t name, const JinjaValue& value);

  JinjaScope* open_scope(JinjaScope* parent);
  void close_scope(JinjaScope* scope);

  const JinjaProgram& program_;
  const std::tm now_;
  JinjaHeap heap_;
  std::deque<JinjaScope> scopes_;
  std::vector<JinjaScope*> free_scopes_;
  std::deque<JinjaLoop> loops_;  // a value may outlive its loop
  size_t loop_depth_ = 0;
  std::deque<std::vector<JinjaValue>> loop_items_;
  JinjaScope root_;
  JinjaScope* scope_ = &root_;
  LimitedText* output_ = nullptr;
  int depth_ = 0;
  uint32_t line_ = 1;  // being run, for messages
};

class JinjaInterpreter::DepthGuard {
 public:
  explicit DepthGuard(JinjaInterpreter& owner) : owner_(owner) { ++owner_.depth_; }
  ~DepthGuard() { --owner_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

  Status check() const;

 private:
  JinjaInterpreter& owner_;
};

// A new scope that is the current one while the guard lives.
class JinjaInterpreter::ScopeGuard {
 public:
  ScopeGuard(JinjaInterpreter& owner, JinjaScope* parent);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  JinjaInterpreter& owner_;
  JinjaScope* outer_;
};

}  // namespace lockstep

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

namespace lockstep::jinja {

// Nesting of statements, expressions and macro calls while rendering.
inline constexpr int kTemplateDepthMax = 600;

struct Scope {
  Scope* parent = nullptr;
  bool is_captured = false;  // a macro refers to it, so it is not reused
  std::vector<std::pair<uint32_t, Value>> variables;

  // Here or in a parent; adds the number of variables and scopes examined to `looks`.
  const Value* find(uint32_t name, size_t& looks) const;
  void set(uint32_t name, const Value& value);
};

class Interpreter {
 public:
  Interpreter(const Program& program, const std::tm& now, Limits limits);

  Heap& heap() { return heap_; }
  void set_variable(uint32_t name, const Value& value) { root_.set(name, value); }

  // kInvalidArgument if the template called raise_exception, with only its message; otherwise one
  // sentence with the line.
  Result<MarkedText> render();

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class ScopeGuard;
  class DepthGuard;

  // Statements (jinja_interpreter_statements.cc).
  Result<Flow> run(const Block& block);
  Result<Flow> run(const Statement& statement);
  Result<Flow> run_if(const Statement& statement);
  Result<Flow> run_for(const Statement& statement);
  Result<std::vector<Value>> loop_items(const Statement& statement);
  Status run_set_block(const Statement& statement);
  // Runs the body in its own scope and returns its output as a value.
  Result<Value> captured(const Block& body);
  Status assign(const Target& target, const Value& value);
  Status print(const Value& value);

  // Expressions (jinja_interpreter_expressions.cc).
  Result<Value> evaluate(const Expression& expression);
  Result<Value> evaluate_name(const Expression& expression);
  Result<Value> evaluate_items(const Expression& expression);
  Result<Value> evaluate_dict(const Expression& expression);
  Result<Value> evaluate_access(const Expression& expression);
  Result<Value> evaluate_slice(const Expression& expression);
  Result<Value> evaluate_logic(const Expression& expression);
  Result<Value> evaluate_concatenation(const Expression& expression);
  Result<Value> evaluate_operation(const Expression& expression);
  Result<Value> evaluate_comparison(const Expression& expression);
  Result<Value> evaluate_conditional(const Expression& expression);
  Result<Value> evaluate_test(const Expression& expression);
  Result<Value> evaluate_call(const Expression& expression);
  // A filter after the filters of its subject; `subject` replaces a null one.
  Result<Value> evaluate_filter(const Expression& expression, const Value* subject);
  Result<Arguments> evaluate_arguments(const Expression& expression);
  Result<Value> call(const Value& callable, const Arguments& arguments);
  Result<Value> call_macro(const Macro& macro, const Arguments& arguments);
  Result<Value> call_function(Function function, const Arguments& arguments);
  Result<Value> make_namespace(const Arguments& arguments);
  Result<Value> make_range(const Arguments& arguments);
  Result<Value> format_now(const Arguments& arguments);

  // Variables visible in the scope; charges one step per kLooksOfAStep variables examined.
  static constexpr size_t kLooksOfAStep = 64;
  const Value* find_variable(uint32_t name);
  void set_here(uint32_t name, const Value& value);

  Scope* open_scope(Scope* parent);
  void close_scope(Scope* scope);

  const Program& program_;
  const std::tm now_;
  Heap heap_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  std::deque<Loop> loops_;  // a value may outlive its loop
  size_t loop_depth_ = 0;
  std::deque<std::vector<Value>> loop_items_;
  Scope root_;
  Scope* scope_ = &root_;
  LimitedText* output_ = nullptr;
  int depth_ = 0;
  uint32_t line_ = 1;  // being run, for messages
};

class Interpreter::DepthGuard {
 public:
  explicit DepthGuard(Interpreter& owner) : owner_(owner) { ++owner_.depth_; }
  ~DepthGuard() { --owner_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

  Status check() const;

 private:
  Interpreter& owner_;
};

// A new scope that is the current one while the guard lives.
class Interpreter::ScopeGuard {
 public:
  ScopeGuard(Interpreter& owner, Scope* parent);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Interpreter& owner_;
  Scope* outer_;
};

}  // namespace lockstep::jinja

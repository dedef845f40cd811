#include <fmt/core.h>

#include <utility>

#include "chat/jinja/jinja_interpreter.h"
#include "chat/jinja/jinja_operators.h"
#include "chat/jinja/jinja_print.h"

namespace lockstep::jinja {

const Value* Scope::find(uint32_t name, size_t& looks) const {
  for (const Scope* scope = this; scope; scope = scope->parent) {
    looks += 1 + scope->variables.size();
    for (const auto& variable : scope->variables) {
      if (variable.first == name) return &variable.second;
    }
  }
  return nullptr;
}

void Scope::set(uint32_t name, const Value& value) {
  for (auto& variable : variables) {
    if (variable.first == name) {
      variable.second = value;
      return;
    }
  }
  variables.emplace_back(name, value);
}

Status Interpreter::DepthGuard::check() const {
  owner_.heap_.charge_steps(1);
  TRY(owner_.heap_.check());
  if (owner_.depth_ <= kTemplateDepthMax) return Ok{};
  return Error{ErrorCode::kExhausted, fmt::format("more than {} calls and blocks are inside each "
                                                  "other",
                                                  kTemplateDepthMax)};
}

Interpreter::ScopeGuard::ScopeGuard(Interpreter& owner, Scope* parent)
    : owner_(owner), outer_(owner.scope_) {
  owner_.scope_ = owner_.open_scope(parent);
}

Interpreter::ScopeGuard::~ScopeGuard() {
  owner_.close_scope(owner_.scope_);
  owner_.scope_ = outer_;
}

Interpreter::Interpreter(const Program& program, const std::tm& now, Limits limits)
    : program_(program), now_(now), heap_(limits) {}

const Value* Interpreter::find_variable(uint32_t name) {
  size_t looks = 0;
  const Value* value = scope_->find(name, looks);
  heap_.charge_steps(static_cast<int64_t>(looks / kLooksOfAStep));
  return value;
}

void Interpreter::set_here(uint32_t name, const Value& value) {
  heap_.charge_steps(static_cast<int64_t>(scope_->variables.size() / kLooksOfAStep));
  scope_->set(name, value);
}

Scope* Interpreter::open_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    heap_.charge_bytes(sizeof(Scope));
    free_scopes_.push_back(&scopes_.emplace_back());
  }
  Scope* scope = free_scopes_.back();
  free_scopes_.pop_back();
  scope->parent = parent;
  return scope;
}

void Interpreter::close_scope(Scope* scope) {
  if (scope->is_captured) return;
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

Result<MarkedText> Interpreter::render() {
  LimitedText output(kPromptBytesMax);
  output_ = &output;
  auto end = run(program_.body);
  if (end.ok() && output.overflowed()) {
    end = Error{ErrorCode::kExhausted,
                fmt::format("the prompt has more than {} bytes", kPromptBytesMax)};
  }
  if (const Status within = heap_.check(); end.ok() && !within.ok()) end = within.error();
  if (end.ok()) return std::move(output.text());
  if (end.error().code == ErrorCode::kInvalidArgument) return std::move(end.error());
  return Error{end.error().code,
               fmt::format("line {} of the chat template: {}", line_, end.error().message)};
}

Result<Interpreter::Flow> Interpreter::run(const Block& block) {
  for (const Statement* statement : block) {
    const Flow flow = TRY(run(*statement));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run(const Statement& statement) {
  const DepthGuard depth(*this);
  line_ = statement.line;
  TRY(depth.check());
  switch (statement.kind) {
    case StatementKind::kText:
      output_->append(statement.text);
      heap_.charge_look(statement.text.size());
      return Flow::kNext;
    case StatementKind::kPrint:
      TRY(print(TRY(evaluate(*statement.expression))));
      return Flow::kNext;
    case StatementKind::kIf:
      return run_if(statement);
    case StatementKind::kFor:
      return run_for(statement);
    case StatementKind::kSet:
      TRY(assign(statement.target, TRY(evaluate(*statement.expression))));
      return Flow::kNext;
    case StatementKind::kSetBlock:
      TRY(run_set_block(statement));
      return Flow::kNext;
    case StatementKind::kMacro:
      for (Scope* scope = scope_; scope; scope = scope->parent) scope->is_captured = true;
      set_here(statement.name, heap_.macro(&statement, scope_));
      return Flow::kNext;
    case StatementKind::kFilterBlock: {
      const Value body = TRY(captured(statement.body));
      TRY(print(TRY(evaluate_filter(*statement.expression, &body))));
      return Flow::kNext;
    }
    case StatementKind::kGeneration: {
      const ScopeGuard scope(*this, scope_);
      return run(statement.body);
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      break;
  }
  return Flow::kContinue;
}

Status Interpreter::print(const Value& value) {
  if (value.is(Kind::kText)) {
    heap_.charge_look(value.text->size());
    output_->append(*value.text);
  } else {
    output_->append(TRY(jinja_str(heap_, value)));
  }
  if (output_->overflowed()) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("the prompt has more than {} bytes", kPromptBytesMax)};
  }
  return Ok{};
}

Result<Interpreter::Flow> Interpreter::run_if(const Statement& statement) {
  for (const Branch& branch : statement.branches) {
    if (branch.condition && !is_true(TRY(evaluate(*branch.condition)))) continue;
    return run(branch.body);
  }
  return Flow::kNext;
}

// The elements that pass the loop's condition, which sees the target but not `loop`.
Result<std::vector<Value>> Interpreter::loop_items(const Statement& statement) {
  auto items = TRY(jinja_items(heap_, TRY(evaluate(*statement.expression))));
  if (!statement.condition) return items;
  std::vector<Value> passed;
  for (const Value& item : items) {
    const ScopeGuard scope(*this, scope_);
    TRY(assign(statement.target, item));
    if (is_true(TRY(evaluate(*statement.condition)))) passed.push_back(item);
  }
  return passed;
}

Result<Interpreter::Flow> Interpreter::run_for(const Statement& statement) {
  auto items = TRY(loop_items(statement));
  if (items.empty()) {
    const ScopeGuard scope(*this, scope_);
    return run(statement.otherwise);
  }
  heap_.charge_bytes(items.size() * sizeof(Value) + sizeof(Loop));
  const auto& kept = loop_items_.emplace_back(std::move(items));
  Loop& state = loops_.emplace_back(Loop{&kept, 0, ++loop_depth_});
  Value loop;
  loop.kind = Kind::kLoop;
  loop.loop = &state;
  for (; state.index < kept.size(); ++state.index) {
    const ScopeGuard scope(*this, scope_);
    set_here(statement.name, loop);
    TRY(assign(statement.target, kept[state.index]));
    if (TRY(run(statement.body)) == Flow::kBreak) break;
  }
  --loop_depth_;
  return Flow::kNext;
}

Result<Value> Interpreter::captured(const Block& body) {
  LimitedText inner(kPromptBytesMax);
  LimitedText* const outer = std::exchange(output_, &inner);
  const auto end = [&] {
    const ScopeGuard scope(*this, scope_);
    return run(body);
  }();
  output_ = outer;
  if (!end.ok()) return end.error();
  if (inner.overflowed()) {
    return Error{ErrorCode::kExhausted,
                 fmt::format("a block prints more than {} bytes", kPromptBytesMax)};
  }
  return heap_.text(std::move(inner.text()));
}

Status Interpreter::run_set_block(const Statement& statement) {
  Value value = TRY(captured(statement.body));
  if (statement.expression) value = TRY(evaluate_filter(*statement.expression, &value));
  return assign(statement.target, value);
}

Status Interpreter::assign(const Target& target, const Value& value) {
  if (!target.parts.empty()) {
    const auto items = TRY(jinja_items(heap_, value));
    if (items.size() != target.parts.size()) {
      return jinja_error(fmt::format("{} values for {} names", items.size(), target.parts.size()));
    }
    for (size_t i = 0; i < items.size(); ++i) TRY(assign(target.parts[i], items[i]));
    return Ok{};
  }
  if (target.attribute.empty()) {
    set_here(target.name, value);
    return Ok{};
  }
  const Value* space = find_variable(target.name);
  if (!space || !space->is(Kind::kNamespace)) {
    return jinja_error("cannot assign attribute on non-namespace object");
  }
  if (!space->dict->replace(target.attribute, value)) {
    space->dict->set(heap_.text(target.attribute), value);
  }
  return Ok{};
}

}  // namespace lockstep::jinja

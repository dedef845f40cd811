// Grammar -> CompiledGrammar: expressions become positions, each built with the position that
// follows it; then positions that no text completes are dropped and left recursion is refused.
#include <algorithm>
#include <optional>

#include "grammar/automaton/compiled_grammar.h"
#include "grammar/automaton/grammar.h"

namespace lockstep {
namespace {

using PositionKind = CompiledGrammar::Kind;
using Position = CompiledGrammar::Position;

constexpr int kExpressionDepthMax = 2'000;
constexpr uint32_t kEnd = CompiledGrammar::kEndPosition;

class Builder {
 public:
  Builder(const Grammar& grammar, WorkBudget& budget) : grammar_(grammar), budget_(budget) {
    add({.kind = PositionKind::kEnd});
    for (size_t i = 0; i < grammar.rules().size(); ++i) rule_starts_.push_back(add({}));
  }

  Result<CompiledGrammar> build(Grammar::Expression root) {
    for (size_t i = 0; i < rule_starts_.size(); ++i) {
      const uint32_t body = position_of(grammar_.rules()[i].body, kEnd);
      Position& start = result_.positions[rule_starts_[i]];
      start = {.kind = PositionKind::kSplit,
               .first = static_cast<uint32_t>(result_.targets.size()),
               .count = 1};
      result_.targets.push_back(body);
      if (grammar_.rules()[i].is_json_character) mark_json_character(body);
      if (!error_.message.empty()) return error_;
    }
    result_.start = position_of(root, kEnd);
    if (!error_.message.empty()) return error_;
    return std::move(result_);
  }

 private:
  // Include the later passes over the positions.
  static constexpr size_t kStepsOfPosition = 6;
  static constexpr size_t kStepsOfTarget = 3;

  void spend(size_t steps) {
    if (!budget_.spend(steps)) error_ = too_much_work();
  }

  uint32_t add(Position position) {
    spend(kStepsOfPosition);
    if (result_.positions.size() >= kGrammarPositionsMax) {
      error_ = {ErrorCode::kExhausted, "the grammar has more than the limit of " +
                                           std::to_string(kGrammarPositionsMax) +
                                           " positions; make it simpler"};
      return kEnd;
    }
    result_.positions.push_back(position);
    return static_cast<uint32_t>(result_.positions.size() - 1);
  }

  uint32_t add_edge(uint8_t first, uint8_t last, uint32_t target) {
    result_.edges.push_back({first, last, target});
    return add({.kind = PositionKind::kBytes,
                .first = static_cast<uint32_t>(result_.edges.size() - 1),
                .count = 1});
  }

  uint32_t add_split(const std::vector<uint32_t>& targets) {
    spend(kStepsOfTarget * targets.size());
    const auto first = static_cast<uint32_t>(result_.targets.size());
    result_.targets.insert(result_.targets.end(), targets.begin(), targets.end());
    return add({.kind = PositionKind::kSplit,
                .first = first,
                .count = static_cast<uint32_t>(targets.size())});
  }

  void mark_json_character(uint32_t position) {
    Position& marked = result_.positions[position];
    if (marked.kind == PositionKind::kBytes) marked.is_json_character = true;
  }

  // The position at which `expression` begins; `next` follows it.
  uint32_t position_of(Grammar::Expression expression, uint32_t next) {
    const Grammar::Node& node = grammar_.nodes()[expression.index];
    if (!error_.message.empty()) return kEnd;
    if (depth_ >= kExpressionDepthMax) {
      error_ = {ErrorCode::kExhausted, "the grammar is nested deeper than the limit of " +
                                           std::to_string(kExpressionDepthMax)};
      return kEnd;
    }
    spend(1);
    ++depth_;
    const uint32_t position = position_of(node, next);
    --depth_;
    return position;
  }

  uint32_t position_of(const Grammar::Node& node, uint32_t next) {
    switch (node.kind) {
      case Grammar::Kind::kEmpty:
        return next;
      case Grammar::Kind::kNever:
        return add_split({});
      case Grammar::Kind::kBytes:
        return add_edge(static_cast<uint8_t>(node.a), static_cast<uint8_t>(node.b), next);
      case Grammar::Kind::kLiteral:
        for (size_t i = node.bytes.size(); i-- > 0;) {
          const auto byte = static_cast<uint8_t>(node.bytes[i]);
          next = add_edge(byte, byte, next);
        }
        return next;
      case Grammar::Kind::kToken:
        return add({.kind = PositionKind::kToken, .first = node.a, .next = next});
      case Grammar::Kind::kSequence:
        for (size_t i = node.parts.size(); i-- > 0;) next = position_of(node.parts[i], next);
        return next;
      case Grammar::Kind::kChoice: {
        std::vector<uint32_t> targets;
        for (const Grammar::Expression part : node.parts) {
          targets.push_back(position_of(part, next));
        }
        return add_split(targets);
      }
      case Grammar::Kind::kRepeat:
        return repeat(node, next);
      case Grammar::Kind::kAutomaton:
        return automaton(grammar_.automata()[node.a], next);
      case Grammar::Kind::kRule:
        return call(rule_starts_[node.a], next);
    }
    return kEnd;
  }

  // A tail call: the last call of a rule needs no return.
  uint32_t call(uint32_t start, uint32_t next) {
    return next == kEnd ? start : add({.kind = PositionKind::kCall, .first = start, .next = next});
  }

  uint32_t repeat(const Grammar::Node& node, uint32_t next) {
    // Strings keep their count even if it does not matter: the matcher reads from it how many more
    // characters may follow.
    const Grammar::Node& body_node = grammar_.nodes()[node.parts[0].index];
    const bool is_text =
        body_node.kind == Grammar::Kind::kRule && grammar_.rules()[body_node.a].is_json_character;
    const bool is_loop = node.b == kUnbounded && node.a <= 1 && !is_text;
    if (node.a == 0 && node.b == 1) return add_split({position_of(node.parts[0], next), next});
    if (is_loop) {
      const uint32_t loop = add({});
      const uint32_t body = position_of(node.parts[0], loop);
      result_.positions[loop] = {.kind = PositionKind::kSplit,
                                 .first = static_cast<uint32_t>(result_.targets.size()),
                                 .count = 2};
      result_.targets.push_back(body);
      result_.targets.push_back(next);
      return node.a == 0 ? loop : body;
    }
    const uint32_t body = position_of(node.parts[0], kEnd);
    return add(
        {.kind = PositionKind::kRepeat, .first = body, .next = next, .min = node.a, .max = node.b});
  }

  uint32_t automaton(const std::vector<Grammar::State>& states, uint32_t next) {
    const auto base = static_cast<uint32_t>(result_.positions.size());
    for (size_t i = 0; i < states.size(); ++i) add({});
    for (uint32_t i = 0; i < states.size() && error_.message.empty(); ++i) {
      result_.positions[base + i] = automaton_state(states[i], base, next);
    }
    return base;
  }

  // States with only bytes, usual in number and character automata, need no split.
  Position automaton_state(const Grammar::State& state, uint32_t base, uint32_t next) {
    spend(kStepsOfTarget * state.edges.size());
    const bool only_bytes =
        !state.is_accepting && !state.edges.empty() &&
        std::all_of(state.edges.begin(), state.edges.end(), [&](const Grammar::Edge& edge) {
          return grammar_.nodes()[edge.label.index].kind == Grammar::Kind::kBytes;
        });
    if (only_bytes) {
      const auto first = static_cast<uint32_t>(result_.edges.size());
      for (const Grammar::Edge& edge : state.edges) {
        const Grammar::Node& label = grammar_.nodes()[edge.label.index];
        result_.edges.push_back(
            {static_cast<uint8_t>(label.a), static_cast<uint8_t>(label.b), base + edge.target});
      }
      return {.kind = PositionKind::kBytes,
              .first = first,
              .count = static_cast<uint32_t>(state.edges.size())};
    }
    std::vector<uint32_t> targets;
    for (const Grammar::Edge& edge : state.edges) {
      targets.push_back(position_of(edge.label, base + edge.target));
    }
    if (state.is_accepting) targets.push_back(next);
    const auto first = static_cast<uint32_t>(result_.targets.size());
    result_.targets.insert(result_.targets.end(), targets.begin(), targets.end());
    return {.kind = PositionKind::kSplit,
            .first = first,
            .count = static_cast<uint32_t>(targets.size())};
  }

  const Grammar& grammar_;
  WorkBudget& budget_;
  CompiledGrammar result_;
  std::vector<uint32_t> rule_starts_;
  int depth_ = 0;
  Error error_{ErrorCode::kInternal, ""};
};

// By position: whether some text (`usable`), or the empty text (`nullable`), leads from it to the
// end of its rule.
std::vector<bool> positions_with(const CompiledGrammar& grammar, bool only_empty) {
  std::vector<bool> found(grammar.positions.size());
  const auto holds = [&](const Position& position) {
    switch (position.kind) {
      case PositionKind::kEnd:
        return true;
      case PositionKind::kToken:
        return !only_empty && found[position.next];
      case PositionKind::kBytes:
        for (uint32_t i = 0; !only_empty && i < position.count; ++i) {
          if (found[grammar.edges[position.first + i].target]) return true;
        }
        return false;
      case PositionKind::kSplit:
        for (uint32_t i = 0; i < position.count; ++i) {
          if (found[grammar.targets[position.first + i]]) return true;
        }
        return false;
      case PositionKind::kCall:
        return found[position.first] && found[position.next];
      case PositionKind::kRepeat:
        return found[position.next] && (position.min == 0 || found[position.first]);
    }
    return false;
  };
  // A worklist: a position is checked again whenever one that it depends on has been found.
  std::vector<std::vector<uint32_t>> users(grammar.positions.size());
  std::vector<uint32_t> pending;
  for (uint32_t i = 0; i < grammar.positions.size(); ++i) {
    const Position& position = grammar.positions[i];
    const auto uses = [&](uint32_t target) { users[target].push_back(i); };
    if (position.kind == PositionKind::kBytes) {
      for (uint32_t k = 0; k < position.count; ++k) uses(grammar.edges[position.first + k].target);
    } else if (position.kind == PositionKind::kSplit) {
      for (uint32_t k = 0; k < position.count; ++k) uses(grammar.targets[position.first + k]);
    } else if (position.kind != PositionKind::kEnd) {
      uses(position.next);
      if (position.kind != PositionKind::kToken) uses(position.first);
    }
    pending.push_back(i);
  }
  while (!pending.empty()) {
    const uint32_t i = pending.back();
    pending.pop_back();
    if (found[i] || !holds(grammar.positions[i])) continue;
    found[i] = true;
    for (const uint32_t user : users[i]) {
      if (!found[user]) pending.push_back(user);
    }
  }
  return found;
}

// Unusable positions become splits without targets, and edges to them are removed.
void drop_unusable(CompiledGrammar& grammar, const std::vector<bool>& usable) {
  for (uint32_t i = 0; i < grammar.positions.size(); ++i) {
    Position& position = grammar.positions[i];
    if (!usable[i]) {
      position = {.kind = PositionKind::kSplit};
    } else if (position.kind == PositionKind::kBytes) {
      const auto first = grammar.edges.begin() + position.first;
      const auto last =
          std::remove_if(first, first + position.count,
                         [&](const CompiledGrammar::Edge& edge) { return !usable[edge.target]; });
      position.count = static_cast<uint32_t>(last - first);
    } else if (position.kind == PositionKind::kSplit) {
      const auto first = grammar.targets.begin() + position.first;
      const auto last = std::remove_if(first, first + position.count,
                                       [&](uint32_t target) { return !usable[target]; });
      position.count = static_cast<uint32_t>(last - first);
    } else if (position.kind == PositionKind::kRepeat && !usable[position.first]) {
      // min is 0: no round of the body is ever complete.
      position = {.kind = PositionKind::kSplit,
                  .first = static_cast<uint32_t>(grammar.targets.size()),
                  .count = 1};
      grammar.targets.push_back(grammar.positions[i].next);
    }
  }
}

struct EmptyStep {
  uint32_t target;
  bool opens;  // a rule or a body, which pushes onto the stack
};

void each_empty_step(const CompiledGrammar& grammar, const std::vector<bool>& nullable, uint32_t i,
                     std::vector<EmptyStep>& steps) {
  const Position& position = grammar.positions[i];
  steps.clear();
  if (position.kind == PositionKind::kSplit) {
    for (uint32_t k = 0; k < position.count; ++k) {
      steps.push_back({grammar.targets[position.first + k], false});
    }
  } else if (position.kind == PositionKind::kCall || position.kind == PositionKind::kRepeat) {
    steps.push_back({position.first, true});
    const bool passes =
        nullable[position.first] || (position.kind == PositionKind::kRepeat && position.min == 0);
    if (passes) steps.push_back({position.next, false});
  }
}

// Tarjan's strongly connected components over steps without a byte, with an explicit stack: a
// component with a step that opens a rule or body would open it endlessly.
class RecursionCheck {
 public:
  RecursionCheck(const CompiledGrammar& grammar, const std::vector<bool>& nullable)
      : grammar_(grammar),
        nullable_(nullable),
        index_(grammar.positions.size(), 0),
        low_(grammar.positions.size(), 0),
        component_(grammar.positions.size(), 0) {}

  bool has_left_recursion() {
    for (uint32_t i = 0; i < index_.size(); ++i) {
      if (index_[i] == 0) visit(i);
    }
    std::vector<EmptyStep> steps;
    for (uint32_t i = 0; i < index_.size(); ++i) {
      each_empty_step(grammar_, nullable_, i, steps);
      for (const EmptyStep step : steps) {
        if (step.opens && component_[step.target] == component_[i]) return true;
      }
    }
    return false;
  }

 private:
  struct Frame {
    uint32_t position;
    std::vector<EmptyStep> steps;
    size_t done = 0;
  };

  void open(uint32_t position) {
    index_[position] = low_[position] = ++counter_;
    path_.push_back(position);
    Frame frame{position, {}, 0};
    each_empty_step(grammar_, nullable_, position, frame.steps);
    frames_.push_back(std::move(frame));
  }

  void visit(uint32_t root) {
    open(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const uint32_t position = frame.position;
      if (frame.done < frame.steps.size()) {
        const uint32_t target = frame.steps[frame.done++].target;
        if (index_[target] == 0) {
          open(target);
        } else if (component_[target] == 0) {
          low_[position] = std::min(low_[position], index_[target]);
        }
        continue;
      }
      if (low_[position] == index_[position]) close(position);
      frames_.pop_back();
      if (!frames_.empty()) {
        const uint32_t parent = frames_.back().position;
        low_[parent] = std::min(low_[parent], low_[position]);
      }
    }
  }

  void close(uint32_t position) {
    ++component_count_;
    while (true) {
      const uint32_t member = path_.back();
      path_.pop_back();
      component_[member] = component_count_;
      if (member == position) return;
    }
  }

  const CompiledGrammar& grammar_;
  const std::vector<bool>& nullable_;
  std::vector<uint32_t> index_;
  std::vector<uint32_t> low_;
  std::vector<uint32_t> component_;  // 0: still on the path
  std::vector<uint32_t> path_;
  std::vector<Frame> frames_;
  uint32_t counter_ = 0;
  uint32_t component_count_ = 0;
};

}  // namespace

Result<std::shared_ptr<const CompiledGrammar>> compile_grammar(const Grammar& grammar,
                                                               Grammar::Expression root) {
  if (grammar.budget().is_over()) return too_much_work();
  if (!grammar.within_limits()) {
    return Error{ErrorCode::kExhausted,
                 "the grammar has more than the limit of " + std::to_string(kGrammarPartsMax) +
                     " parts or " + std::to_string(kGrammarRulesMax) + " rules; make it simpler"};
  }
  WorkBudget budget = grammar.budget();
  CompiledGrammar compiled = TRY(Builder(grammar, budget).build(root));
  const std::vector<bool> usable = positions_with(compiled, false);
  if (!usable[compiled.start]) {
    return Error{ErrorCode::kInvalidArgument, "no text at all satisfies the grammar"};
  }
  drop_unusable(compiled, usable);
  const std::vector<bool> nullable = positions_with(compiled, true);
  if (RecursionCheck(compiled, nullable).has_left_recursion()) {
    return Error{ErrorCode::kInvalidArgument,
                 "a rule of the grammar begins with itself (left recursion); move the recursion to "
                 "its end, or write a repetition"};
  }
  return std::make_shared<const CompiledGrammar>(std::move(compiled));
}

}  // namespace lockstep

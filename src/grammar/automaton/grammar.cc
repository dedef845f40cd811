#include "grammar/automaton/grammar.h"

#include <algorithm>
#include <map>

#include "grammar/automaton/character_code.h"
#include "grammar/dfa/intern_table.h"

namespace lockstep {
namespace {

constexpr size_t kStepsOfPart = 2;
constexpr size_t kStepsOfEdge = 4;         // of an automaton of characters
constexpr size_t kStepsOfCharacter = 150;  // the code of one set
constexpr size_t kStepsOfCharacterRange = 8;

// Whether any text is accepted from this state.
bool is_any_text(const Dfa& dfa, uint32_t index) {
  const Dfa::State& state = dfa.states[index];
  std::vector<SymbolRange> ranges;
  for (const Dfa::Edge& edge : state.edges) {
    if (edge.target == index) ranges.push_back({edge.first, edge.last});
  }
  return state.is_accepting && SymbolSet(std::move(ranges)) == SymbolSet::scalar_values();
}

}  // namespace

Grammar::Grammar(WorkBudget budget) : budget_(budget) {
  add({.kind = Kind::kEmpty, .parts = {}, .bytes = {}});
  add({.kind = Kind::kNever, .parts = {}, .bytes = {}});
}

Grammar::Expression Grammar::add(Node node) {
  const size_t parts = 1 + node.parts.size();
  part_count_ += parts + node.bytes.size();
  if (!budget_.spend(kStepsOfPart * parts) || !within_limits()) return never();
  nodes_.push_back(std::move(node));
  return {static_cast<uint32_t>(nodes_.size() - 1)};
}

size_t Grammar::HashOfCharacter::operator()(const CharacterKey& key) const {
  auto hash = static_cast<uint64_t>(key.coding);
  for (const SymbolRange range : key.set.ranges()) {
    hash = mixed_hash(mixed_hash(hash, range.first), range.last);
  }
  return hash;
}

Grammar::Expression Grammar::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  return add({.kind = Kind::kLiteral, .parts = {}, .bytes = std::string(bytes)});
}

Grammar::Expression Grammar::byte_range(uint8_t first, uint8_t last) {
  return add({.kind = Kind::kBytes, .a = first, .b = last, .parts = {}, .bytes = {}});
}

Grammar::Expression Grammar::token(int32_t id) {
  return add({.kind = Kind::kToken, .a = static_cast<uint32_t>(id), .parts = {}, .bytes = {}});
}

Grammar::Expression Grammar::sequence(const std::vector<Expression>& parts) {
  std::vector<Expression> kept;
  for (const Expression part : parts) {
    if (part == never()) return never();
    if (part != empty()) kept.push_back(part);
  }
  if (kept.empty()) return empty();
  if (kept.size() == 1) return kept[0];
  return add({.kind = Kind::kSequence, .parts = std::move(kept), .bytes = {}});
}

Grammar::Expression Grammar::choice(const std::vector<Expression>& alternatives) {
  std::vector<Expression> kept;
  for (const Expression alternative : alternatives) {
    if (alternative != never()) kept.push_back(alternative);
  }
  if (kept.empty()) return never();
  if (kept.size() == 1) return kept[0];
  return add({.kind = Kind::kChoice, .parts = std::move(kept), .bytes = {}});
}

Grammar::Expression Grammar::repeat(Expression body, uint32_t min, uint32_t max) {
  if (min > max) return never();
  if (max == 0 || body == empty()) return empty();
  if (body == never()) return min == 0 ? empty() : never();
  if (min == 1 && max == 1) return body;
  return add({.kind = Kind::kRepeat, .a = min, .b = max, .parts = {body}, .bytes = {}});
}

Grammar::Expression Grammar::automaton(std::vector<State> states) {
  if (states.empty()) return never();
  for (const State& state : states) {
    part_count_ += 1 + state.edges.size();
    budget_.spend(kStepsOfPart * (1 + state.edges.size()));
  }
  const auto index = static_cast<uint32_t>(automata_.size());
  const Expression added = add({.kind = Kind::kAutomaton, .a = index, .parts = {}, .bytes = {}});
  if (within_limits()) automata_.push_back(std::move(states));
  return added;
}

Grammar::Expression Grammar::bytes(const Dfa& dfa) {
  std::vector<State> states;
  for (const Dfa::State& state : dfa.states) {
    State copy{state.is_accepting, {}};
    for (const Dfa::Edge& edge : state.edges) {
      copy.edges.push_back(
          {byte_range(static_cast<uint8_t>(edge.first), static_cast<uint8_t>(edge.last)),
           edge.target});
    }
    states.push_back(std::move(copy));
  }
  return automaton(std::move(states));
}

Grammar::Expression Grammar::character(const SymbolSet& set, CharacterCoding coding) {
  CharacterKey key{coding, set.intersected(SymbolSet::scalar_values())};
  if (key.set.empty() || !within_limits()) return never();
  const auto known = characters_.find(key);
  if (known != characters_.end()) return known->second;
  const SymbolSet& scalars = key.set;
  budget_.spend(kStepsOfCharacter + kStepsOfCharacterRange * scalars.ranges().size());
  const Rule rule = declare(coding == CharacterCoding::kUtf8 ? "character" : "json-character");
  if (rule.index < rules_.size()) {
    rules_[rule.index].is_json_character =
        coding == CharacterCoding::kJsonString && scalars == SymbolSet::scalar_values();
  }
  define(rule, bytes(character_code(scalars, coding)));
  const Expression used = use(rule);
  characters_.emplace(std::move(key), used);
  return used;
}

Grammar::Expression Grammar::text(const Dfa& code_points, CharacterCoding coding) {
  std::vector<State> states;
  const auto end = static_cast<uint32_t>(code_points.states.size());
  for (const Dfa::State& state : code_points.states) {
    if (!budget_.spend(kStepsOfEdge * (1 + state.edges.size()))) return never();
    State copy{state.is_accepting, {}};
    if (is_any_text(code_points, static_cast<uint32_t>(states.size()))) {
      // Written as a repetition, which masks recognise; it leads to the last state.
      const Expression any = character(SymbolSet::scalar_values(), coding);
      states.push_back({false, {{repeat(any, 0, kUnbounded), end}}});
      continue;
    }
    std::map<uint32_t, std::vector<SymbolRange>> by_target;
    for (const Dfa::Edge& edge : state.edges) {
      by_target[edge.target].push_back({edge.first, edge.last});
    }
    for (auto& [target, ranges] : by_target) {
      const Expression label = character(SymbolSet(std::move(ranges)), coding);
      if (label != never()) copy.edges.push_back({label, target});
    }
    states.push_back(std::move(copy));
  }
  if (!states.empty()) states.push_back({true, {}});
  return automaton(std::move(states));
}

Grammar::Rule Grammar::declare(std::string name) {
  part_count_ += 1 + name.size();
  if (rules_.size() >= kGrammarRulesMax) part_count_ = kGrammarPartsMax + 1;
  if (!within_limits()) return {};
  rules_.push_back({std::move(name), never(), false});
  return {static_cast<uint32_t>(rules_.size() - 1)};
}

void Grammar::define(Rule rule, Expression body) {
  if (rule.index < rules_.size()) rules_[rule.index].body = body;
}

Grammar::Expression Grammar::use(Rule rule) {
  return add({.kind = Kind::kRule, .a = rule.index, .parts = {}, .bytes = {}});
}

Grammar::Expression Grammar::named(std::string name, Expression body) {
  const Rule rule = declare(std::move(name));
  define(rule, body);
  return use(rule);
}

}  // namespace lockstep

#include "grammar/regex/regex.h"

#include "grammar/regex/regex_syntax.h"

namespace lockstep {
namespace {

using NodeKind = RegexNode::Kind;

Error too_large() {
  return Error{ErrorCode::kExhausted, "the regex needs more than the limit of " +
                                          std::to_string(kNfaStatesMax) +
                                          " states; use shorter repetitions"};
}

// Thompson's construction. The automaton borrows the sets of the tree.
class NfaBuilder {
 public:
  uint32_t add() {
    nfa_.states.emplace_back();
    return static_cast<uint32_t>(nfa_.states.size() - 1);
  }
  void jump(uint32_t from, uint32_t to, Nfa::When when = Nfa::When::kAlways) {
    nfa_.states[from].jumps.push_back({to, when});
  }
  bool is_full() const { return nfa_.states.size() > kNfaStatesMax; }
  size_t state_count() const { return nfa_.states.size(); }

  // Builds `node` from state `from`; returns where it ends.
  uint32_t build(const RegexNode& node, uint32_t from) {
    if (is_full()) return from;
    switch (node.kind) {
      case NodeKind::kSet: {
        const uint32_t to = add();
        nfa_.states[from].symbols = &node.set;
        nfa_.states[from].next = to;
        return to;
      }
      case NodeKind::kBegin:
      case NodeKind::kEnd: {
        const uint32_t to = add();
        jump(from, to, node.kind == NodeKind::kBegin ? Nfa::When::kAtBegin : Nfa::When::kAtEnd);
        return to;
      }
      case NodeKind::kSequence:
        for (const RegexNode& part : node.parts) from = build_fresh(part, from);
        return from;
      case NodeKind::kChoice: {
        const uint32_t to = add();
        for (const RegexNode& part : node.parts) jump(build_fresh(part, from), to);
        return to;
      }
      case NodeKind::kRepeat:
        return repeat(node, from);
    }
    return from;
  }

  Nfa take(uint32_t start, uint32_t accept) {
    nfa_.start = start;
    nfa_.accept = accept;
    return std::move(nfa_);
  }
  Nfa::State& state(uint32_t index) { return nfa_.states[index]; }

 private:
  // A state can have only one symbol set, so each part begins in a new state.
  uint32_t build_fresh(const RegexNode& node, uint32_t from) {
    const uint32_t begin = add();
    jump(from, begin);
    return build(node, begin);
  }

  uint32_t repeat(const RegexNode& node, uint32_t from) {
    const RegexNode& body = node.parts[0];
    for (uint32_t i = 0; i < node.min && !is_full(); ++i) from = build_fresh(body, from);
    const uint32_t to = add();
    if (node.max == UINT32_MAX) {
      const uint32_t loop = add();
      jump(from, loop);
      jump(build_fresh(body, loop), loop);
      jump(loop, to);
      return to;
    }
    for (uint32_t i = node.min; i < node.max && !is_full(); ++i) {
      jump(from, to);
      from = build_fresh(body, from);
    }
    jump(from, to);
    return to;
  }

  Nfa nfa_;
};

}  // namespace

Result<Dfa> regex_dfa(std::string_view pattern, RegexMatch match, WorkBudget& budget) {
  const RegexNode tree = TRY(parse_regex(pattern, budget));
  NfaBuilder builder;
  const uint32_t start = builder.add();
  uint32_t begin = start;
  if (match == RegexMatch::kSearch) {
    // Any text before and after the match.
    const uint32_t before = builder.add();
    builder.jump(start, before);
    builder.state(before).symbols = &SymbolSet::scalar_values();
    builder.state(before).next = before;
    begin = builder.add();
    builder.jump(before, begin);
  }
  uint32_t accept = builder.build(tree, begin);
  if (match == RegexMatch::kSearch) {
    const uint32_t behind = builder.add();
    builder.jump(accept, behind);
    builder.state(behind).symbols = &SymbolSet::scalar_values();
    builder.state(behind).next = behind;
    accept = behind;
  }
  if (builder.is_full()) return too_large();
  if (!budget.spend(2 * builder.state_count())) return too_much_work();
  return determinize(builder.take(start, accept), budget);
}

Result<Grammar::Expression> add_regex(Grammar& grammar, std::string_view pattern) {
  const Dfa dfa = TRY(regex_dfa(pattern, RegexMatch::kWhole, grammar.budget()));
  if (dfa.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the regex matches no text at all"};
  }
  return grammar.text(dfa, CharacterCoding::kUtf8);
}

}  // namespace lockstep

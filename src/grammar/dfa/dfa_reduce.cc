// Fewer states for the same words: drops dead states and merges equivalent ones.
#include <algorithm>
#include <span>
#include <tuple>

#include "grammar/dfa/dfa.h"

namespace lockstep {
namespace {

constexpr uint32_t kDropped = UINT32_MAX;
// Above these limits states are not merged: matching with them costs less than merging would.
constexpr size_t kReduceStatesMax = 400;
constexpr size_t kReduceEdgesMax = 10'000;

size_t edge_count(const Dfa& dfa) {
  size_t count = 0;
  for (const Dfa::State& state : dfa.states) count += state.edges.size();
  return count;
}

// By state: the sources of its incoming edges, one entry per edge.
std::vector<std::vector<uint32_t>> sources_of(const Dfa& dfa) {
  std::vector<std::vector<uint32_t>> sources(dfa.states.size());
  for (uint32_t state = 0; state < dfa.states.size(); ++state) {
    for (const Dfa::Edge& edge : dfa.states[state].edges) sources[edge.target].push_back(state);
  }
  return sources;
}

std::vector<bool> states_that_accept(const Dfa& dfa) {
  const auto sources = sources_of(dfa);
  std::vector<uint32_t> stack;
  std::vector<bool> live(dfa.states.size());
  for (uint32_t state = 0; state < dfa.states.size(); ++state) {
    if (!dfa.states[state].is_accepting) continue;
    live[state] = true;
    stack.push_back(state);
  }
  while (!stack.empty()) {
    const uint32_t state = stack.back();
    stack.pop_back();
    for (const uint32_t source : sources[state]) {
      if (live[source]) continue;
      live[source] = true;
      stack.push_back(source);
    }
  }
  return live;
}

// Keeps one state per class; `class_of` kDropped drops a state. Class numbers are at most the
// number of states.
Dfa renumbered(const Dfa& dfa, const std::vector<uint32_t>& class_of) {
  std::vector<uint32_t> number(dfa.states.size() + 1, kDropped);
  Dfa result;
  std::vector<uint32_t> representatives;
  for (uint32_t state = 0; state < dfa.states.size(); ++state) {
    const uint32_t group = class_of[state];
    if (group == kDropped || number[group] != kDropped) continue;
    number[group] = static_cast<uint32_t>(representatives.size());
    representatives.push_back(state);
  }
  for (const uint32_t state : representatives) {
    Dfa::State copy{dfa.states[state].is_accepting, {}};
    for (const Dfa::Edge& edge : dfa.states[state].edges) {
      if (class_of[edge.target] == kDropped) continue;
      add_edge(copy, {edge.first, edge.last, number[class_of[edge.target]]});
    }
    result.states.push_back(std::move(copy));
  }
  return result;
}

// Moore's partition refinement. A round visits only states with an edge into a class that was just
// created. When a class is split its largest part keeps the number, so that each state is visited
// only a logarithmic number of times.
class Partition {
 public:
  explicit Partition(const Dfa& dfa)
      : dfa_(dfa), sources_(sources_of(dfa)), class_of_(dfa.states.size()), sizes_(2) {
    for (uint32_t state = 0; state < class_of_.size(); ++state) {
      class_of_[state] = dfa.states[state].is_accepting ? 1 : 0;
      ++sizes_[class_of_[state]];
      changed_.push_back(state);
    }
  }

  // The class of each state.
  Result<std::vector<uint32_t>> refined(WorkBudget& budget) {
    while (!changed_.empty()) {
      TRY(look_again(budget));
      changed_.clear();
      for (size_t begin = 0; begin < looks_.size();) {
        size_t end = begin;
        while (end < looks_.size() && looks_[end].group == looks_[begin].group) ++end;
        cut(std::span(looks_).subspan(begin, end - begin));
        begin = end;
      }
    }
    return class_of_;
  }

 private:
  // One visited state; the targets in `edges` are classes.
  struct Look {
    uint32_t group;
    std::vector<uint32_t> edges;
    uint32_t state;
    bool operator<(const Look& other) const {
      return std::tie(group, edges, state) < std::tie(other.group, other.edges, other.state);
    }
  };

  // Visits all states with an edge to a changed one, before any class changes.
  Status look_again(WorkBudget& budget) {
    std::vector<uint32_t> states;
    if (is_first_) {
      states = changed_;
    } else {
      for (const uint32_t state : changed_) {
        states.insert(states.end(), sources_[state].begin(), sources_[state].end());
      }
      std::sort(states.begin(), states.end());
      states.erase(std::unique(states.begin(), states.end()), states.end());
    }
    is_first_ = false;
    looks_.clear();
    for (const uint32_t state : states) {
      if (!budget.spend(4 + dfa_.states[state].edges.size() / 4)) return too_much_work();
      Dfa::State merged;
      for (const Dfa::Edge& edge : dfa_.states[state].edges) {
        add_edge(merged, {edge.first, edge.last, class_of_[edge.target]});
      }
      Look look{class_of_[state], {}, state};
      for (const Dfa::Edge& edge : merged.edges) {
        look.edges.insert(look.edges.end(), {edge.first, edge.last, edge.target});
      }
      looks_.push_back(std::move(look));
    }
    std::sort(looks_.begin(), looks_.end());
    return Ok{};
  }

  // `looks` are all visited states of one class: those with different edges leave it. An unvisited
  // state has no edge into a new class, so it is not equivalent to a visited one.
  void cut(std::span<const Look> looks) {
    const uint32_t group = looks[0].group;
    const size_t unseen = sizes_[group] - looks.size();
    std::vector<std::span<const Look>> parts;
    for (size_t begin = 0; begin < looks.size();) {
      size_t end = begin;
      while (end < looks.size() && looks[end].edges == looks[begin].edges) ++end;
      parts.push_back(looks.subspan(begin, end - begin));
      begin = end;
    }
    const auto largest =
        std::max_element(parts.begin(), parts.end(),
                         [](const auto& a, const auto& b) { return a.size() < b.size(); });
    if (unseen == 0 || unseen < largest->size()) {
      // The largest part stays; the unvisited states, which are fewer, leave.
      if (unseen > 0) leave_unseen(looks);
      parts.erase(largest);
    }
    for (const auto& part : parts) {
      const uint32_t fresh = new_class();
      for (const Look& look : part) move_to(look.state, fresh);
    }
  }

  void leave_unseen(std::span<const Look> looks) {
    std::vector<bool> is_seen(class_of_.size());
    for (const Look& look : looks) is_seen[look.state] = true;
    const uint32_t group = looks[0].group;
    const uint32_t fresh = new_class();
    for (uint32_t state = 0; state < class_of_.size(); ++state) {
      if (class_of_[state] == group && !is_seen[state]) move_to(state, fresh);
    }
  }

  uint32_t new_class() {
    sizes_.push_back(0);
    return static_cast<uint32_t>(sizes_.size() - 1);
  }

  void move_to(uint32_t state, uint32_t group) {
    --sizes_[class_of_[state]];
    class_of_[state] = group;
    ++sizes_[group];
    changed_.push_back(state);
  }

  const Dfa& dfa_;
  const std::vector<std::vector<uint32_t>> sources_;
  std::vector<uint32_t> class_of_;
  std::vector<size_t> sizes_;      // of classes
  std::vector<uint32_t> changed_;  // states with a new class
  std::vector<Look> looks_;
  bool is_first_ = true;  // then every state is visited
};

}  // namespace

void add_edge(Dfa::State& state, Dfa::Edge edge) {
  if (!state.edges.empty() && state.edges.back().target == edge.target &&
      state.edges.back().last + 1 == edge.first) {
    state.edges.back().last = edge.last;
  } else {
    state.edges.push_back(edge);
  }
}

Result<Dfa> reduced(Dfa dfa, WorkBudget& budget) {
  if (dfa.empty()) return dfa;
  if (!budget.spend(4 * dfa.states.size() + edge_count(dfa))) return too_much_work();
  const std::vector<bool> live = states_that_accept(dfa);
  if (!live[0]) return Dfa{};
  std::vector<uint32_t> class_of(dfa.states.size(), kDropped);
  for (uint32_t state = 0; state < class_of.size(); ++state) {
    if (live[state]) class_of[state] = state;
  }
  Dfa trimmed = renumbered(dfa, class_of);
  if (trimmed.states.size() > kReduceStatesMax || edge_count(trimmed) > kReduceEdgesMax) {
    return trimmed;
  }
  const std::vector<uint32_t> classes = TRY(Partition(trimmed).refined(budget));
  return renumbered(trimmed, classes);
}

}  // namespace lockstep

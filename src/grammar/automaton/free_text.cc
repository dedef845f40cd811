#include "grammar/automaton/free_text.h"

#include <algorithm>

namespace lockstep {
namespace {

using StateId = GrammarAutomaton::StateId;

constexpr size_t kStatesMax = 300;
constexpr uint32_t kCharactersMax = 70;  // longer tokens are rare
constexpr size_t kReturnStepsMax = 4096;

// Bytes that begin a character, and the range of the byte after them (Unicode, table 3-7).
struct Lead {
  uint8_t first;
  uint8_t last;
  int missing;
  uint8_t next_first;
  uint8_t next_last;
};
constexpr Lead kLeads[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF},
    {0xED, 0xED, 2, 0x80, 0x9F}, {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF},
    {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

// Breadth-first by characters: level i has the states reached by i characters but not by fewer.
class Search {
 public:
  Search(GrammarAutomaton& automaton, StateId start, FreeKind kind)
      : automaton_(automaton), kind_(kind) {
    states_.push_back({start, 0});
  }

  FreeText run() {
    bool is_exact = true;
    uint32_t characters = UINT32_MAX;
    for (size_t i = 0; i < states_.size(); ++i) {
      const FreeText::After at = states_[i];
      is_exact = at.characters < kCharactersMax && states_.size() < kStatesMax;
      if (!is_exact || !expand(at)) {
        characters = at.characters;
        break;
      }
    }
    FreeText result{characters, {}};
    for (const FreeText::After& seen : states_) {
      if (characters == UINT32_MAX) {
        result.after.push_back({seen.state, characters});
      } else if (is_exact && seen.characters <= characters) {
        result.after.push_back({seen.state, characters - seen.characters});
      }
    }
    return result;
  }

 private:
  struct Part {
    StateId state;
    int missing;  // bytes missing from the current character
    bool operator==(const Part&) const = default;
  };

  bool expand(FreeText::After at) {
    level_ = at.characters + 1;
    if (kind_ == FreeKind::kAsciiWords) {
      return follow(at.state, 'a', 'z', 0) && follow(at.state, 'A', 'Z', 0) &&
             follow(at.state, '0', '9', 0);
    }
    // The quote and the backslash lie between these.
    if (!follow(at.state, ' ', '!', 0) || !follow(at.state, '#', '[', 0) ||
        !follow(at.state, ']', 0x7F, 0)) {
      return false;
    }
    parts_.clear();
    for (const Lead& lead : kLeads) {
      StateId before = GrammarAutomaton::kDead;
      for (uint32_t byte = lead.first; byte <= lead.last; ++byte) {
        const StateId next = automaton_.step(at.state, static_cast<uint8_t>(byte));
        if (next == GrammarAutomaton::kDead) return false;
        if (next == before) continue;
        before = next;
        if (!follow(next, lead.next_first, lead.next_last, lead.missing - 1)) return false;
      }
    }
    for (size_t i = 0; i < parts_.size(); ++i) {
      const Part part = parts_[i];
      if (!follow(part.state, 0x80, 0xBF, part.missing - 1)) return false;
    }
    return true;
  }

  bool follow(StateId from, uint32_t first, uint32_t last, int missing) {
    StateId before = GrammarAutomaton::kDead;
    for (uint32_t byte = first; byte <= last; ++byte) {
      const StateId next = automaton_.step(from, static_cast<uint8_t>(byte));
      if (next == GrammarAutomaton::kDead) return false;
      if (next == before) continue;
      before = next;
      if (missing > 0) {
        const Part part{next, missing};
        if (std::find(parts_.begin(), parts_.end(), part) == parts_.end()) parts_.push_back(part);
      } else {
        add_state(next);
      }
    }
    return true;
  }

  void add_state(StateId state) {
    const bool is_known = std::any_of(states_.begin(), states_.end(),
                                      [&](FreeText::After seen) { return seen.state == state; });
    if (!is_known) states_.push_back({state, level_});
  }

  GrammarAutomaton& automaton_;
  FreeKind kind_;
  std::vector<FreeText::After> states_;  // `characters` is the level here
  std::vector<Part> parts_;
  uint32_t level_ = 0;
};

// Whether every multibyte character leads from a state back to it.
class ReturnCheck {
 public:
  ReturnCheck(GrammarAutomaton& automaton, StateId home) : automaton_(automaton), home_(home) {}

  bool run() {
    return std::all_of(std::begin(kLeads), std::end(kLeads), [&](const Lead& lead) {
      return for_new_states(home_, lead.first, lead.last, [&](StateId begun) {
        return returns(begun, lead.next_first, lead.next_last, lead.missing);
      });
    });
  }

 private:
  bool returns(StateId from, uint32_t first, uint32_t last, int missing) {
    return for_new_states(from, first, last, [&](StateId next) {
      return missing == 1 ? next == home_ : returns(next, 0x80, 0xBF, missing - 1);
    });
  }

  // Whether `holds` is true for all states that these bytes lead to.
  template <class Holds>
  bool for_new_states(StateId from, uint32_t first, uint32_t last, Holds&& holds) {
    StateId before = GrammarAutomaton::kDead;
    for (uint32_t byte = first; byte <= last; ++byte) {
      const StateId next = automaton_.step(from, static_cast<uint8_t>(byte));
      if (next == GrammarAutomaton::kDead || ++steps_ > kReturnStepsMax) return false;
      if (next != before && !holds(next)) return false;
      before = next;
    }
    return true;
  }

  GrammarAutomaton& automaton_;
  const StateId home_;
  size_t steps_ = 0;
};

}  // namespace

FreeText free_text(GrammarAutomaton& automaton, StateId start, FreeKind kind) {
  return Search(automaton, start, kind).run();
}

CharacterKinds staying_ascii(GrammarAutomaton& automaton, StateId state) {
  CharacterKinds kinds;
  for (uint8_t byte = 2; byte < 0x80; ++byte) {
    if (automaton.step(state, byte) == state) kinds.add(byte);
  }
  return kinds;
}

bool beyond_ascii_stays(GrammarAutomaton& automaton, StateId state) {
  return ReturnCheck(automaton, state).run();
}

}  // namespace lockstep

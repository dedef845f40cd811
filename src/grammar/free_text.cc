#include "grammar/free_text.h"

#include <algorithm>

namespace lockstep {
namespace {

using StateId = GrammarAutomaton::StateId;

constexpr size_t kPlacesMax = 200;

// Bytes that begin a character, and what may follow them (Unicode, table 3-7).
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

class Search {
 public:
  Search(GrammarAutomaton& automaton, StateId start) : automaton_(automaton) {
    places_.push_back({start, 0});
  }

  bool plain() {
    for (size_t i = 0; i < places_.size(); ++i) {
      const Place place = places_[i];
      const bool follows = place.missing > 0 ? follow(place.state, 0x80, 0xBF, place.missing - 1)
                                             : begin_character(place.state);
      if (!follows) return false;
    }
    return true;
  }

  bool words() {
    for (size_t i = 0; i < places_.size(); ++i) {
      const StateId state = places_[i].state;
      if (!follow(state, 'a', 'z', 0) || !follow(state, 'A', 'Z', 0) ||
          !follow(state, '0', '9', 0)) {
        return false;
      }
    }
    return true;
  }

  std::vector<StateId> states() const {
    std::vector<StateId> states;
    for (const Place place : places_) {
      if (place.missing == 0) states.push_back(place.state);
    }
    return states;
  }

 private:
  struct Place {
    StateId state;
    int missing;  // bytes of the character that has begun
    bool operator==(const Place&) const = default;
  };

  bool begin_character(StateId state) {
    if (!follow(state, ' ', '!', 0) || !follow(state, '#', '[', 0) ||
        !follow(state, ']', 0x7F, 0)) {
      return false;
    }
    for (const Lead& lead : kLeads) {
      for (uint32_t byte = lead.first; byte <= lead.last; ++byte) {
        const StateId next = automaton_.step(state, static_cast<uint8_t>(byte));
        if (next == GrammarAutomaton::kDead ||
            !follow(next, lead.next_first, lead.next_last, lead.missing - 1)) {
          return false;
        }
      }
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
      const Place place{next, missing};
      if (std::find(places_.begin(), places_.end(), place) == places_.end()) {
        places_.push_back(place);
      }
    }
    return places_.size() <= kPlacesMax;
  }

  GrammarAutomaton& automaton_;
  std::vector<Place> places_;
};

}  // namespace

std::vector<StateId> states_of_free_text(GrammarAutomaton& automaton, StateId start) {
  Search search(automaton, start);
  return search.plain() ? search.states() : std::vector<StateId>();
}

std::vector<StateId> states_of_free_words(GrammarAutomaton& automaton, StateId start) {
  Search search(automaton, start);
  return search.words() ? search.states() : std::vector<StateId>();
}

}  // namespace lockstep

// A grammar compiled to positions, which GrammarAutomaton steps through. Immutable; any thread may
// read it, and many automata may share it. Made by compile_grammar() (grammar.h).
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

class CompiledGrammar {
 public:
  enum class Kind : uint8_t {
    kBytes,   // edges [first, first + count), each over a byte
    kToken,   // special token `first`, then `next`
    kSplit,   // targets [first, first + count): all of them, without a byte
    kCall,    // the rule at position `first`, then `next`
    kRepeat,  // the body at position `first`, min to max times, then `next`
    kEnd,     // the end of a rule
  };
  struct Position {
    Kind kind = Kind::kSplit;
    bool is_json_character = false;  // starts the rule for any character of a JSON string
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t next = 0;
    uint32_t min = 0;
    uint32_t max = 0;
  };
  struct Edge {
    uint8_t first;
    uint8_t last;
    uint32_t target;
  };

  std::vector<Position> positions;
  std::vector<Edge> edges;
  std::vector<uint32_t> targets;
  uint32_t start = 0;

  static constexpr uint32_t kEndPosition = 0;
};

}  // namespace lockstep

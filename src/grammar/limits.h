// The named limits of the grammar folder. Schemas, regexes and grammars come from outside, so each
// thing that they can make grow ends here, with one sentence. Work is counted, not timed: the same
// text is always accepted or always refused, on a slow machine too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace lockstep {

inline constexpr size_t kSchemaBytesMax = size_t{1} << 20;
inline constexpr size_t kRegexBytesMax = size_t{16} << 10;
inline constexpr size_t kEbnfBytesMax = size_t{256} << 10;
inline constexpr size_t kConstraintBytesMax = size_t{2}
                                              << 20;  // a constraint's text, schemas and all
inline constexpr int kRegexDepthMax = 100;            // groups inside groups
inline constexpr int kEbnfDepthMax = 100;             // parentheses inside parentheses
inline constexpr int kSchemaDepthMax = 200;  // allOf, anyOf, oneOf, $ref... inside each other
inline constexpr uint32_t kRepetitionMax = 10'000;     // of a regex's and an EBNF's {m,n}
inline constexpr size_t kNfaStatesMax = 60'000;        // of one regex
inline constexpr size_t kEnumCharactersMax = 200'000;  // of one enum, of the keys of one object
inline constexpr size_t kDfaStatesMax = 20'000;        // of one string, key or number
inline constexpr size_t kGrammarRulesMax = 50'000;
inline constexpr size_t kGrammarPartsMax = 1'000'000;  // expressions of a grammar
inline constexpr size_t kGrammarPositionsMax = 1'000'000;
inline constexpr size_t kSchemaAlternativesMax = 256;    // what anyOf and allOf multiply out to
inline constexpr int64_t kCompileWorkMax = 20'000'000;   // steps of one front end; under a second
inline constexpr uint32_t kStackDepthMax = 1'000;        // open rules of a matcher
inline constexpr size_t kStepThreadsMax = 5'000;         // readings of one byte of a text
inline constexpr uint64_t kMaskWorkMax = 2'000'000;      // readings of all tokens for one mask
inline constexpr size_t kAutomatonStatesMax = 100'000;   // then what no matcher uses is forgotten
inline constexpr size_t kAutomatonStackMax = 1'000'000;  // stack entries, likewise
inline constexpr size_t kCachedMasksMax = 256;           // of one automaton: 4 MiB at 128k tokens
inline constexpr size_t kRollbackTokensMax = 256;

// What a front end has left of kCompileWorkMax.
class WorkBudget {
 public:
  explicit WorkBudget(int64_t steps = kCompileWorkMax) : left_(steps) {}
  bool spend(size_t steps) { return (left_ -= static_cast<int64_t>(steps)) >= 0; }

 private:
  int64_t left_;
};

inline Error too_much_work() {
  return Error{ErrorCode::kExhausted, "the grammar needs more work to compile than the limit of " +
                                          std::to_string(kCompileWorkMax) +
                                          " steps; make it simpler"};
}

}  // namespace lockstep

// The limits of the grammar folder. Schemas, regexes and grammars come from outside, so everything
// that they can make grow has a limit here and a clear error. Work is counted, not timed: the same
// text is always accepted or always refused, even on a slow machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/threads/work.h"

namespace lockstep {

inline constexpr size_t kSchemaBytesMax = size_t{1} << 20;
inline constexpr size_t kRegexBytesMax = size_t{16} << 10;
inline constexpr size_t kEbnfBytesMax = size_t{256} << 10;
inline constexpr size_t kConstraintBytesMax = size_t{2}
                                              << 20;   // a constraint's text, schemas and all
inline constexpr int kRegexDepthMax = 100;             // nested groups
inline constexpr int kEbnfDepthMax = 100;              // nested parentheses
inline constexpr int kSchemaDepthMax = 200;            // nested allOf, anyOf, oneOf, $ref...
inline constexpr uint32_t kRepetitionMax = 10'000;     // in {m,n} of a regex or EBNF
inline constexpr size_t kNfaStatesMax = 60'000;        // of one regex
inline constexpr size_t kEnumCharactersMax = 200'000;  // of one enum, of the keys of one object
inline constexpr size_t kDfaStatesMax = 20'000;        // of one string, key or number
inline constexpr size_t kGrammarRulesMax = 50'000;
inline constexpr size_t kGrammarPartsMax = 1'000'000;  // expressions of a grammar
inline constexpr size_t kGrammarPositionsMax = 1'000'000;
inline constexpr size_t kSchemaAlternativesMax = 256;    // after multiplying out anyOf and allOf
inline constexpr int64_t kCompileWorkMax = 20'000'000;   // steps per grammar: see WorkBudget
inline constexpr uint32_t kStackDepthMax = 1'000;        // open rules of a matcher
inline constexpr size_t kStepThreadsMax = 5'000;         // readings at one byte of a text
inline constexpr uint64_t kMaskWorkMax = 2'000'000;      // readings of all tokens for one mask
inline constexpr size_t kAutomatonStatesMax = 100'000;   // beyond it unused states are dropped
inline constexpr size_t kAutomatonStackMax = 1'000'000;  // stack entries, same
inline constexpr size_t kCachedMasksMax = 256;           // per automaton: 4 MiB at 128k tokens
inline constexpr size_t kRollbackTokensMax = 256;

// The work left for a grammar, of kCompileWorkMax; shared by all front ends that add to it. A step
// is about 100 instructions and never more than 320 (tests/growth counts them), so that compiling
// takes about half a second, at worst two, on an ordinary processor. Loops spend their cost before
// they run. Also checks whether the thread's Work (base/threads/work.h) is
// over.
class WorkBudget {
 public:
  explicit WorkBudget(int64_t steps = kCompileWorkMax) : steps_max_(steps) {}
  // For automata that this program makes once for itself: no limit, and Work is not checked.
  static WorkBudget unlimited() {
    WorkBudget budget(INT64_MAX);
    budget.asks_work_ = false;
    return budget;
  }

  bool spend(size_t steps) {
    spent_ += static_cast<int64_t>(steps);
    return spent_ < next_look_ || look();
  }
  bool is_over() const { return is_over_; }
  int64_t spent() const { return spent_; }

 private:
  static constexpr int64_t kStepsPerLook = 500;

  bool look() {
    is_over_ = is_over_ || spent_ > steps_max_ || (asks_work_ && Work::is_over());
    next_look_ = is_over_ ? 0 : spent_ + kStepsPerLook;
    return !is_over_;
  }

  int64_t steps_max_;
  int64_t spent_ = 0;
  int64_t next_look_ = 0;
  bool asks_work_ = true;
  bool is_over_ = false;
};

// Why a WorkBudget is over.
inline Error too_much_work() {
  if (Status work = Work::check(); !work.ok()) return work.error();
  return Error{ErrorCode::kExhausted, "the grammar needs more work to compile than the limit of " +
                                          std::to_string(kCompileWorkMax) +
                                          " steps; make it simpler"};
}

}  // namespace lockstep

// The texts of JSON numbers as automata over bytes, so that bounds and multiples are exact for any
// number of digits and combine like other automata (dfa.h). Pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "grammar/dfa/dfa.h"
#include "json/json.h"

namespace lockstep {

// A finite decimal number: digits without leading zeros ("0" for none) and, after the point,
// without trailing zeros.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";
  std::string fraction;
  bool operator==(const Decimal&) const = default;
};

// For a double: the shortest decimal that reads back to it, which is presumably what its author
// wrote.
Decimal decimal_of(const Json& number);

enum class Bound { kAtLeast, kAbove, kAtMost, kBelow };

using SharedDfa = std::shared_ptr<const Dfa>;

// These four are made once and shared.
const SharedDfa& any_number();    // with exponents, and up to 20 digits after a point
const SharedDfa& plain_number();  // without exponents
// Numbers with at most 15 digits if there is a point or an exponent: a double distinguishes any two
// of these, so readers compare exactly the written value. Exponents are as programs print them:
// after one digit that is not 0 (1e-09, 1.5E+21).
const SharedDfa& exact_number();
const SharedDfa& whole_number();  // 7, -7, 7.0, 7.00
// With exponents as in exact_number().
Result<Dfa> numbers_within(Bound bound, const Decimal& limit, WorkBudget& budget);
// Without exponents. kUnsupported if the automaton would be too large.
Result<Dfa> multiples_of(const Decimal& step, WorkBudget& budget);
// All texts of this number: 7 and 7.0, 1e+300.
Result<Dfa> texts_of_number(const Json& number, WorkBudget& budget);

}  // namespace lockstep

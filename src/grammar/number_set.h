// The texts of JSON numbers as automata over bytes, so that bounds and multiples are exact for any
// number of digits and join like other automata (dfa.h). Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "grammar/dfa.h"
#include "json/json.h"

namespace lockstep {

// A finite decimal number: digits without leading zeros ("0" for none) and, behind the point,
// without trailing ones.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";
  std::string fraction;
  bool operator==(const Decimal&) const = default;
};

// Of a double: the shortest decimal that reads back to it, which is what its author wrote.
Decimal decimal_of(const Json& number);

enum class Bound { kAtLeast, kAbove, kAtMost, kBelow };

const Dfa& any_number();    // with exponents, and up to 20 digits behind a point
const Dfa& plain_number();  // without exponents
// The same with at most 15 digits where there is a point: a double tells any two of them apart, so
// that what a reader compares is what was written.
const Dfa& exact_number();
const Dfa& whole_number();  // 7, -7, 7.0, 7.00
// Only numbers without exponents are in these.
Dfa numbers_within(Bound bound, const Decimal& limit);
// kUnsupported where the automaton would be too large.
Result<Dfa> multiples_of(const Decimal& step);
// Ways to write this one number: 7 and 7.0, 1e+300.
Dfa texts_of_number(const Json& number);

}  // namespace lockstep

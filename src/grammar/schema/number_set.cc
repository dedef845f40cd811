#include "grammar/schema/number_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <vector>

#include "base/check.h"
#include "grammar/regex/regex.h"

namespace lockstep {
namespace {

constexpr size_t kPlainDigitsMax = 400;
// Remainders before and after the point; the signs and zeros of plain_number() add few states.
constexpr size_t kRemaindersMax = kDfaStatesMax / 2;

SharedDfa number_regex(std::string_view pattern) {
  WorkBudget budget = WorkBudget::unlimited();
  auto dfa = regex_dfa(pattern, RegexMatch::kWhole, budget);
  LOCKSTEP_CHECK(dfa.ok());
  return std::make_shared<const Dfa>(std::move(dfa.value()));
}

// Builds an automaton by following `step(state, byte)` from `start`; nullopt means no edge.
template <class State, class Step, class Accepts>
Result<Dfa> explored(State start, std::string_view alphabet, WorkBudget& budget, Step&& step,
                     Accepts&& accepts) {
  constexpr size_t kStepsOfSymbol = 4;
  std::map<State, uint32_t> numbers{{start, 0}};
  std::vector<State> pending{start};
  Dfa dfa;
  for (size_t i = 0; i < pending.size(); ++i) {
    const State state = pending[i];
    if (!budget.spend(kStepsOfSymbol * alphabet.size())) return too_much_work();
    Dfa::State built{accepts(state), {}};
    for (const char c : alphabet) {
      const auto next = step(state, c);
      if (!next) continue;
      const auto [entry, is_new] =
          numbers.try_emplace(*next, static_cast<uint32_t>(pending.size()));
      if (is_new) pending.push_back(*next);
      const auto byte = static_cast<uint8_t>(c);
      built.edges.push_back({byte, byte, entry->second});
    }
    dfa.states.push_back(std::move(built));
  }
  return reduced(std::move(dfa), budget);
}

constexpr std::string_view kAlphabet = "-.0123456789";  // in the order of the bytes
constexpr std::string_view kScientificAlphabet = "+-.0123456789Ee";
// A double holds these and their reciprocals without loss of digits.
constexpr std::string_view kScientificNumber =
    "-?[1-9](\\.[0-9]{1,14})?[eE][+\\-]?(0?[0-9]{1,2}|[12][0-9]{2}|30[0-7])";

// Compares the digits read with those of a limit, ignoring signs.
struct Comparison {
  bool is_negative = false;
  bool has_point = false;
  size_t digits = 0;  // read on this side of the point, as far as it matters
  int order = 0;      // of the digits read: -1 less than the limit's, 0 equal, 1 more
  auto operator<=>(const Comparison&) const = default;
};

int sign_of(int a, int b) {
  return a < b ? -1 : (a > b ? 1 : 0);
}

// The order of the part before the point, once it is complete.
int whole_order(const Comparison& state, const Decimal& limit) {
  if (state.digits != limit.whole.size()) return state.digits < limit.whole.size() ? -1 : 1;
  return state.order;
}

int final_order(const Comparison& state, const Decimal& limit) {
  const int order = state.has_point ? state.order : whole_order(state, limit);
  if (order != 0) return order;
  const size_t fraction_read = state.has_point ? state.digits : 0;
  return fraction_read < limit.fraction.size() ? -1 : 0;
}

std::optional<Comparison> compare(Comparison state, char c, const Decimal& limit) {
  if (c == '-') {
    if (state.is_negative || state.has_point || state.digits > 0) return std::nullopt;
    state.is_negative = true;
    return state;
  }
  if (c == '.') {
    if (state.has_point || state.digits == 0) return std::nullopt;
    return Comparison{state.is_negative, true, 0, whole_order(state, limit)};
  }
  const std::string& digits = state.has_point ? limit.fraction : limit.whole;
  if (state.order == 0) {
    const char other = state.digits < digits.size() ? digits[state.digits] : '0';
    state.order = state.has_point || state.digits < digits.size() ? sign_of(c, other) : 0;
  }
  const size_t digits_max = state.has_point ? digits.size() : digits.size() + 1;
  state.digits = std::min(state.digits + 1, digits_max);
  if (state.has_point && state.order != 0) state.digits = 0;  // the rest does not matter
  return state;
}

bool is_zero(const Decimal& value) {
  return value.whole == "0" && value.fraction.empty();
}

// The order of a complete text against the limit, with signs.
int signed_order(const Comparison& state, const Decimal& limit) {
  const int order = final_order(state, limit);
  if (is_zero(limit)) return order == 0 ? 0 : (state.is_negative ? -1 : 1);
  if (limit.is_negative != state.is_negative) return state.is_negative ? -1 : 1;
  return state.is_negative ? -order : order;
}

bool satisfies(Bound bound, int order) {
  switch (bound) {
    case Bound::kAtLeast:
      return order >= 0;
    case Bound::kAbove:
      return order > 0;
    case Bound::kAtMost:
      return order <= 0;
    case Bound::kBelow:
      return order < 0;
  }
  return false;
}

// Compares a number written with an exponent, ignoring signs: the mantissa with the digits of the
// limit, then the exponents.
struct ScientificComparison {
  bool is_negative = false;
  bool has_exponent = false;
  bool exponent_is_negative = false;
  size_t digits = 0;  // of the mantissa, as far as it matters
  int order = 0;      // of the mantissa: -1 less than the limit's, 0 equal, 1 more
  int exponent = 0;   // its magnitude, at most one more than the limit's
  auto operator<=>(const ScientificComparison&) const = default;
};

class ScientificLimit {
 public:
  explicit ScientificLimit(const Decimal& limit) : limit_(limit), digits_(limit.whole) {
    exponent_ = static_cast<int>(limit.whole.size()) - 1;
    digits_ += limit.fraction;
    const size_t zeros = std::min(digits_.find_first_not_of('0'), digits_.size());
    digits_.erase(0, zeros);
    digits_.resize(digits_.find_last_not_of('0') + 1);
    exponent_ -= static_cast<int>(zeros);
  }

  // kScientificNumber checks the places of signs, point and exponent.
  ScientificComparison after(ScientificComparison state, char c) const {
    if (c == 'e' || c == 'E') {
      if (state.order == 0 && state.digits < digits_.size()) state.order = -1;
      state.has_exponent = true;
      state.digits = 0;
    } else if (c == '-') {
      (state.has_exponent ? state.exponent_is_negative : state.is_negative) = true;
    } else if (c != '+' && c != '.') {
      take_digit(state, c);
    }
    return state;
  }

  int order_of(const ScientificComparison& state) const {
    if (digits_.empty()) return state.is_negative ? -1 : 1;
    if (limit_.is_negative != state.is_negative) return state.is_negative ? -1 : 1;
    const int exponent = state.exponent_is_negative ? -state.exponent : state.exponent;
    const int order = exponent == exponent_ ? state.order : sign_of(exponent, exponent_);
    return state.is_negative ? -order : order;
  }

 private:
  void take_digit(ScientificComparison& state, char c) const {
    if (state.has_exponent) {
      state.exponent = std::min(state.exponent * 10 + (c - '0'), std::abs(exponent_) + 1);
    } else if (state.order == 0) {
      state.order = sign_of(c, state.digits < digits_.size() ? digits_[state.digits] : '0');
      state.digits = state.order == 0 ? std::min(state.digits + 1, digits_.size()) : 0;
    }
  }

  const Decimal& limit_;
  std::string digits_;  // without zeros at either end
  int exponent_ = 0;    // of the first digit
};

Result<Dfa> scientific_within(Bound bound, const Decimal& limit, WorkBudget& budget) {
  static const SharedDfa forms = number_regex(kScientificNumber);
  const ScientificLimit against(limit);
  const Dfa ordered = TRY(explored(
      ScientificComparison{}, kScientificAlphabet, budget,
      [&](const ScientificComparison& state, char c) {
        return std::optional(against.after(state, c));
      },
      [&](const ScientificComparison& state) {
        return state.has_exponent && satisfies(bound, against.order_of(state));
      }));
  return join(*forms, ordered, DfaJoin::kBoth, budget);
}

// Parses "12.5e-3", as fmt prints a double, to a plain decimal.
Decimal parsed(std::string_view text) {
  Decimal value;
  value.is_negative = text.starts_with('-');
  if (value.is_negative) text.remove_prefix(1);
  int exponent = 0;
  if (const size_t e = text.find('e'); e != std::string_view::npos) {
    exponent = std::stoi(std::string(text.substr(e + 1)));
    text = text.substr(0, e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  if (point < text.size()) digits += text.substr(point + 1);
  auto whole_count = static_cast<int>(point) + exponent;
  if (whole_count <= 0) {
    digits.insert(0, static_cast<size_t>(1 - whole_count), '0');
    whole_count = 1;
  }
  if (digits.size() < static_cast<size_t>(whole_count)) {
    digits.resize(static_cast<size_t>(whole_count), '0');
  }
  value.whole = digits.substr(0, static_cast<size_t>(whole_count));
  value.fraction = digits.substr(static_cast<size_t>(whole_count));
  value.whole.erase(0, std::min(value.whole.find_first_not_of('0'), value.whole.size() - 1));
  value.fraction.resize(value.fraction.find_last_not_of('0') + 1);
  return value;
}

struct Remainder {
  bool has_point = false;
  uint64_t value = 0;
  size_t fraction_digits = 0;
  auto operator<=>(const Remainder&) const = default;
};

}  // namespace

Decimal decimal_of(const Json& number) {
  if (number.is_int64()) return parsed(fmt::format("{}", number.get_int64()));
  if (number.is_uint64()) return parsed(fmt::format("{}", number.get_uint64()));
  return parsed(fmt::format("{}", number.get_double()));
}

// Exponents are limited so that the number does not overflow a double, which readers would reject.
// Fractions are limited because a model that writes 0.3333 may never stop.
const SharedDfa& any_number() {
  static const SharedDfa dfa = number_regex(
      "-?(0|[1-9][0-9]*)(\\.[0-9]{1,20})?([eE](-[0-9]{1,3}|\\+?0?[0-9]{1,2}))?|"
      "-?[0-9](\\.[0-9]{1,20})?[eE]\\+?([12][0-9]{2}|30[0-7])");
  return dfa;
}

const SharedDfa& plain_number() {
  static const SharedDfa dfa = number_regex("-?(0|[1-9][0-9]*)(\\.[0-9]+)?");
  return dfa;
}

const SharedDfa& exact_number() {
  static const SharedDfa dfa = [] {
    constexpr int kDigitsMax = 15;
    std::string pattern = "-?(0|[1-9][0-9]*)|-?0\\.[0-9]{1,15}";
    for (int whole = 1; whole < kDigitsMax; ++whole) {
      pattern += fmt::format("|-?[1-9][0-9]{{{}}}\\.[0-9]{{1,{}}}", whole - 1, kDigitsMax - whole);
    }
    pattern += "|" + std::string(kScientificNumber);
    return number_regex(pattern);
  }();
  return dfa;
}

const SharedDfa& whole_number() {
  static const SharedDfa dfa = number_regex("-?(0|[1-9][0-9]*)(\\.0{1,2})?");
  return dfa;
}

Result<Dfa> numbers_within(Bound bound, const Decimal& limit, WorkBudget& budget) {
  const Dfa ordered = TRY(explored(
      Comparison{}, kAlphabet, budget,
      [&](const Comparison& state, char c) { return compare(state, c, limit); },
      [&](const Comparison& state) {
        const bool is_whole_text = state.has_point || state.digits > 0;
        return is_whole_text && satisfies(bound, signed_order(state, limit));
      }));
  const Dfa plain = TRY(join(*plain_number(), ordered, DfaJoin::kBoth, budget));
  return join(plain, TRY(scientific_within(bound, limit, budget)), DfaJoin::kEither, budget);
}

Result<Dfa> multiples_of(const Decimal& step, WorkBudget& budget) {
  const std::string digits = step.whole + step.fraction;
  const size_t places = step.fraction.size();
  uint64_t unit = 0;
  const size_t significant = digits.size() - std::min(digits.find_first_not_of('0'), digits.size());
  if (significant <= 9) unit = significant == 0 ? 0 : std::stoull(digits);
  if (unit == 0 || unit * (places + 2) > kRemaindersMax) {
    return Error{ErrorCode::kUnsupported,
                 "the keyword \"multipleOf\" cannot be enforced while decoding for " + step.whole +
                     (step.fraction.empty() ? "" : "." + step.fraction) +
                     "; use a number with fewer digits"};
  }
  const auto follow = [&](Remainder state, char c) -> std::optional<Remainder> {
    if (c == '-') return state;  // plain_number() checks its place
    if (c == '.') {
      if (state.has_point) return std::nullopt;
      state.has_point = true;
      return state;
    }
    if (state.has_point && state.fraction_digits == places) {
      return c == '0' ? std::optional(state) : std::nullopt;
    }
    state.value = (state.value * 10 + static_cast<uint64_t>(c - '0')) % unit;
    if (state.has_point) ++state.fraction_digits;
    return state;
  };
  const auto accepts = [&](const Remainder& state) {
    uint64_t value = state.value;
    for (size_t i = state.fraction_digits; i < places; ++i) value = value * 10 % unit;
    return value == 0;
  };
  const Dfa divisible = TRY(explored(Remainder{}, kAlphabet, budget, follow, accepts));
  return join(*plain_number(), divisible, DfaJoin::kBoth, budget);
}

Result<Dfa> texts_of_number(const Json& number, WorkBudget& budget) {
  const Decimal value = decimal_of(number);
  std::string pattern;
  if (value.whole.size() + value.fraction.size() <= kPlainDigitsMax) {
    const std::string sign = value.is_negative ? "-" : (is_zero(value) ? "-?" : "");
    pattern = sign + value.whole +
              (value.fraction.empty() ? "(\\.0{1,2})?" : "\\." + value.fraction + "0{0,2}");
  }
  if (number.is_double()) {
    // As fmt and Python print it: 1e-07, 1e+300; then also 1e300.
    const std::string text = fmt::format("{}", number.get_double());
    const size_t e = text.find('e');
    if (e != std::string::npos) {
      std::string mantissa = text.substr(0, e);
      if (const size_t point = mantissa.find('.'); point != std::string::npos) {
        mantissa.insert(point, 1, '\\');
      }
      std::string exponent = text.substr(e + 1);
      const bool is_positive = exponent[0] != '-';
      exponent.erase(0, std::min(exponent.find_first_not_of("+-0"), exponent.size() - 1));
      pattern += (pattern.empty() ? "" : "|") + mantissa + "[eE]" + (is_positive ? "\\+?" : "-") +
                 "0?" + exponent;
    }
  }
  return regex_dfa(pattern, RegexMatch::kWhole, budget);
}

}  // namespace lockstep

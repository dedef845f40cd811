// Number automata checked with integer arithmetic in thousandths.
#include <fmt/core.h>

#include <random>

#include "grammar/grammar_checks.h"
#include "grammar/schema/number_set.h"

namespace lockstep {
namespace {

bool has_text(const Dfa& dfa, std::string_view text) {
  return dfa_accepts(dfa, {text.begin(), text.end()});
}

// A number of thousandths, written with up to five digits after the point.
std::string text_of(int64_t thousandths, int zeros) {
  const int64_t magnitude = thousandths < 0 ? -thousandths : thousandths;
  std::string text = fmt::format("{}{}", thousandths < 0 ? "-" : "", magnitude / 1000);
  std::string fraction = fmt::format("{:03}", magnitude % 1000);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  fraction += std::string(static_cast<size_t>(zeros), '0');
  return fraction.empty() ? text : text + "." + fraction;
}

Json json_of(int64_t thousandths) {
  return parse_json(text_of(thousandths, 0)).value();
}

Dfa within(Bound bound, const Decimal& limit) {
  WorkBudget budget;
  auto dfa = numbers_within(bound, limit, budget);
  REQUIRE(dfa.ok());
  return dfa.value();
}

}  // namespace

TEST_CASE("bounds and multiples are exact") {
  std::mt19937 random(7);
  const auto draw = [&](int64_t most) {
    const int64_t scale[] = {1, 10, 100, 1000};
    const auto step = scale[random() % 4];
    return (static_cast<int64_t>(random() % static_cast<uint64_t>(2 * most + 1)) - most) / step *
           step;
  };
  int within_count = 0;
  for (int round = 0; round < 150; ++round) {
    const int64_t limit = draw(120'000);
    const Dfa at_least = within(Bound::kAtLeast, decimal_of(json_of(limit)));
    const Dfa above = within(Bound::kAbove, decimal_of(json_of(limit)));
    const Dfa at_most = within(Bound::kAtMost, decimal_of(json_of(limit)));
    const Dfa below = within(Bound::kBelow, decimal_of(json_of(limit)));
    const int64_t step = 1 + static_cast<int64_t>(random() % 990);  // 0.991 has 4955 remainders
    WorkBudget budget;
    const auto multiples = multiples_of(decimal_of(json_of(step)), budget);
    REQUIRE(multiples.ok());
    for (int i = 0; i < 60; ++i) {
      int64_t value = i % 3 == 0 ? limit + draw(2) : draw(1'500'000);
      if (i % 3 == 1) value = value / step * step;
      const std::string text = text_of(value, static_cast<int>(random() % 3));
      CAPTURE(limit);
      CAPTURE(step);
      CAPTURE(text);
      CHECK(has_text(at_least, text) == (value >= limit));
      CHECK(has_text(above, text) == (value > limit));
      CHECK(has_text(at_most, text) == (value <= limit));
      CHECK(has_text(below, text) == (value < limit));
      CHECK(has_text(multiples.value(), text) == (value % step == 0));
      CHECK(has_text(*whole_number(), text) == (value % 1000 == 0));
      within_count += value >= limit;
    }
  }
  CHECK(within_count > 1000);
}

TEST_CASE("numbers with an exponent are compared exactly with a bound") {
  std::mt19937 random(13);
  constexpr int64_t kPowers[] = {
      1,         10,         100,         1000,          10'000,         100'000,
      1'000'000, 10'000'000, 100'000'000, 1'000'000'000, 10'000'000'000, 100'000'000'000};
  int within_count = 0;
  for (int round = 0; round < 60; ++round) {
    // In thousandths; a mantissa of three digits and an exponent from -1 to 6.
    const auto draw = [&](int& exponent, int& mantissa) {
      exponent = static_cast<int>(random() % 8) - 1;
      mantissa = 100 + static_cast<int>(random() % 900);
      const int64_t value = mantissa * kPowers[exponent + 1];
      return random() % 2 == 0 ? -value : value;
    };
    int exponent = 0, mantissa = 0;
    const int64_t limit = round == 0 ? 0 : draw(exponent, mantissa);
    const Dfa at_least = within(Bound::kAtLeast, decimal_of(json_of(limit)));
    const Dfa above = within(Bound::kAbove, decimal_of(json_of(limit)));
    const Dfa at_most = within(Bound::kAtMost, decimal_of(json_of(limit)));
    const Dfa below = within(Bound::kBelow, decimal_of(json_of(limit)));
    for (int i = 0; i < 80; ++i) {
      if (i % 4 != 0 || limit == 0) draw(exponent, mantissa);
      int64_t value = mantissa * kPowers[exponent + 1];
      const bool is_negative = i % 2 == 0;
      if (is_negative) value = -value;
      const char* signs[] = {"", "+", "0", "+0"};
      const std::string sign = exponent < 0 ? (i % 3 == 0 ? "-0" : "-") : signs[i % 4];
      const std::string text =
          fmt::format("{}{}.{:02}{}{}{}", is_negative ? "-" : "", mantissa / 100, mantissa % 100,
                      i % 5 == 0 ? "E" : "e", sign, std::abs(exponent));
      CAPTURE(limit);
      CAPTURE(text);
      CHECK(has_text(at_least, text) == (value >= limit));
      CHECK(has_text(above, text) == (value > limit));
      CHECK(has_text(at_most, text) == (value <= limit));
      CHECK(has_text(below, text) == (value < limit));
      within_count += value >= limit;
    }
  }
  CHECK(within_count > 500);
}

TEST_CASE("a number may be written as JavaScript and Python print it") {
  for (const char* text : {"1e-09", "1e-7", "1E5", "1.5e+21", "-2.25e-10", "1e21", "9e307"}) {
    CAPTURE(text);
    CHECK(has_text(*any_number(), text));
    CHECK(has_text(*exact_number(), text));
    CHECK(has_text(within(Bound::kAtLeast, decimal_of(Json(-1))), text));
    CHECK(has_text(within(Bound::kAbove, decimal_of(Json(0))), text) == (text[0] != '-'));
    CHECK(has_text(within(Bound::kBelow, decimal_of(Json(1e-8))), text) ==
          (text[0] == '-' || std::string_view(text) == "1e-09"));
    WorkBudget budget;
    CHECK_FALSE(has_text(multiples_of(decimal_of(Json(1)), budget).value(), text));
  }
  // A reader might take these for 0, for infinity, or round them over the bound.
  for (const char* text : {"1e-999", "1e308", "1.2345678901234567e5", "0e5", "10e5"}) {
    CAPTURE(text);
    CHECK_FALSE(has_text(within(Bound::kAtLeast, decimal_of(Json(-1))), text));
  }
}

TEST_CASE("zero has a sign and stays zero") {
  const Decimal zero = decimal_of(Json(0));
  WorkBudget budget;
  CHECK(has_text(within(Bound::kAtLeast, zero), "-0"));
  CHECK(has_text(within(Bound::kAtLeast, zero), "-0.00"));
  CHECK_FALSE(has_text(within(Bound::kAbove, zero), "-0.0"));
  CHECK_FALSE(has_text(within(Bound::kAtLeast, zero), "-0.001"));
  CHECK(has_text(multiples_of(decimal_of(Json(7)), budget).value(), "-0"));
}

TEST_CASE("decimals are the forms in which a double is printed") {
  CHECK(decimal_of(Json(1e-8)) == Decimal{false, "0", "00000001"});
  CHECK(decimal_of(Json(-2.50)) == Decimal{true, "2", "5"});
  CHECK(decimal_of(Json(1e21)) == Decimal{false, "1" + std::string(21, '0'), ""});
  CHECK(decimal_of(Json(123456.789)) == Decimal{false, "123456", "789"});
  CHECK(decimal_of(Json(UINT64_MAX)) == Decimal{false, "18446744073709551615", ""});
}

TEST_CASE("a constant number may be written as JSON serialisers do") {
  WorkBudget budget;
  CHECK(has_text(texts_of_number(Json(7), budget).value(), "7.0"));
  CHECK(has_text(texts_of_number(Json(1e300), budget).value(), "1e+300"));
  CHECK(has_text(texts_of_number(Json(1.5e-9), budget).value(), "1.5e-09"));
  CHECK(has_text(texts_of_number(Json(1.5e-9), budget).value(), "0.0000000015"));
  CHECK_FALSE(has_text(texts_of_number(Json(7), budget).value(), "7.01"));
  CHECK_FALSE(has_text(texts_of_number(Json(7), budget).value(), "-7"));
}

TEST_CASE("JSON numbers have one form") {
  for (const char* text : {"0", "-0", "10", "1.5", "-1.50e-7", "1E9"}) {
    CHECK(has_text(*any_number(), text));
  }
  for (const char* text : {"", "-", "01", "1.", ".5", "+1", "1e", "0x1", "NaN"}) {
    CHECK_FALSE(has_text(*any_number(), text));
  }
  CHECK(has_text(*any_number(), "0." + std::string(20, '3')));
  CHECK_FALSE(has_text(*any_number(), "0." + std::string(21, '3')));
  CHECK(has_text(*whole_number(), "-3.00"));
  CHECK_FALSE(has_text(*whole_number(), "-3.000"));
}

}  // namespace lockstep

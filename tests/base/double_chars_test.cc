#include "base/double_chars.h"

#include <doctest/doctest.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <version>

namespace lockstep {
namespace {

struct Read {
  size_t length = 0;
  std::errc error{};
  uint64_t bits = 0;
  bool operator==(const Read&) const = default;
};

using Reader = std::from_chars_result (*)(const char*, const char*, double&);

Read read_with(Reader reader, const std::string& text) {
  double value = 12345;
  const auto result = reader(text.data(), text.data() + text.size(), value);
  return {static_cast<size_t>(result.ptr - text.data()), result.ec, std::bit_cast<uint64_t>(value)};
}

TEST_CASE("a double is read by strtod as from_chars reads it: length, error and bits") {
  for (const char* text : {"",
                           "-",
                           "+1",
                           " 1",
                           "1",
                           "-1",
                           "1.",
                           ".5",
                           ".",
                           "-.",
                           "1.5.5",
                           "1e",
                           "1e+",
                           "1e5",
                           "1e+05x",
                           "1E-3",
                           "e5",
                           "0x10",
                           "1_000",
                           "-0",
                           "-0.0",
                           "0e999",
                           "1e999",
                           "-1e999",
                           "1e-999",
                           "4.9e-324",
                           "2e-324",
                           "1e-310",
                           "inf",
                           "-inf",
                           "INFx",
                           "infinit",
                           "infinity",
                           "-Infinity",
                           "1e308",
                           "1.8e308",
                           "--1",
                           "1,5",
                           "00012",
                           "in",
                           "na",
                           "n",
                           "1ee5",
                           "-x",
                           "0.1",
                           "1.7976931348623157e308",
                           "2.2250738585072011e-308",
                           "9007199254740993",
                           "123456789012345678901234567890"}) {
    CAPTURE(text);
    CHECK(read_with(double_from_chars_by_strtod, text) == read_with(double_from_chars, text));
  }
}

TEST_CASE("words that are no numbers have the length that from_chars gives them") {
  for (const char* text :
       {"nan", "NaN", "nan(", "nan()", "nan(12_a)x", "nan(-)", "nanx", "-nan(1)"}) {
    CAPTURE(text);
    const Read ours = read_with(double_from_chars_by_strtod, text);
    const Read theirs = read_with(double_from_chars, text);
    CHECK(ours.length == theirs.length);
    CHECK(ours.error == theirs.error);
  }
}

TEST_CASE("random doubles are read by strtod with the bits that they were written from") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    const auto value = std::bit_cast<double>(bits);
    if (value != value) continue;
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", value);
    const Read read = read_with(double_from_chars_by_strtod, text);
    CAPTURE(text);
    REQUIRE(read.error == std::errc());
    REQUIRE(read.bits == bits);
  }
}

TEST_CASE("nothing after the end is read") {
  const std::string text = "12345";
  double value = 0;
  const auto result = double_from_chars_by_strtod(text.data(), text.data() + 2, value);
  CHECK(result.ptr == text.data() + 2);
  CHECK(value == 12);
}

}  // namespace
}  // namespace lockstep

#include "base/machine/tool_text.h"

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

TEST_CASE("lines of a tool lose their ends and are counted") {
  CHECK(tool_lines("").empty());
  CHECK(tool_lines("a\r\n\nb") == std::vector<std::string_view>{"a", "", "b"});
  CHECK(tool_lines(std::string(2 * kToolLinesMax, '\n')).size() == kToolLinesMax);
}

TEST_CASE("words and trimmed texts have no space around them") {
  CHECK(trimmed(" \t a b \r\n") == "a b");
  CHECK(trimmed(" \n").empty());
  CHECK(tool_words("  maxfiles \t 256   unlimited ") ==
        std::vector<std::string_view>{"maxfiles", "256", "unlimited"});
  CHECK(tool_words(" ").empty());
}

TEST_CASE("numbers are read from the beginning of a text") {
  CHECK(leading_number("78: EX_CONFIG") == 78);
  CHECK(leading_number("18446744073709551615") == ~uint64_t{0});
  CHECK_FALSE(leading_number("18446744073709551616").has_value());
  CHECK_FALSE(leading_number("-1").has_value());
  CHECK_FALSE(leading_number("").has_value());
  CHECK(leading_decimal("1010.09ms").value() == doctest::Approx(1010.09));
  CHECK(leading_decimal("7.") == 7);
  CHECK(leading_decimal("0.1234567891111111111").value() == doctest::Approx(0.1234567891));
  CHECK_FALSE(leading_decimal(".5").has_value());
}

TEST_CASE("the rest after a key is trimmed") {
  CHECK(after_key("\tDevice: en2", "Device:") == "en2");
  CHECK_FALSE(after_key("Devices: en2", "Device:").has_value());
}

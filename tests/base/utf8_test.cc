#include "base/utf8.h"

#include <doctest/doctest.h>

using namespace lockstep;

namespace {

const std::string kR = std::string(kReplacementCharacter);

}  // namespace

TEST_CASE("characters of every length are valid and have their code point") {
  CHECK(first_utf8_character("A").code_point == 0x41);
  CHECK(first_utf8_character("\u00E9x").code_point == 0xE9);
  CHECK(first_utf8_character("\u20AC").code_point == 0x20AC);
  CHECK(first_utf8_character("\U0010FFFF").code_point == 0x10FFFF);
  CHECK(first_utf8_character("\U0001F600z").bytes == 4);
  CHECK(is_valid_utf8("na\u00EFve \u20AC5 \U0001F600"));
  CHECK(is_valid_utf8(""));
}

TEST_CASE("overlong forms, surrogates and code points above U+10FFFF are invalid") {
  for (const char* text :
       {"\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xE2\x82"}) {
    CAPTURE(text);
    CHECK_FALSE(is_valid_utf8(text));
  }
}

TEST_CASE("each maximal invalid subpart becomes one U+FFFD, as Python replaces it") {
  CHECK(replace_invalid_utf8("abc") == "abc");
  CHECK(replace_invalid_utf8("\x80\x80") == kR + kR);
  CHECK(replace_invalid_utf8("\xE2\x82z") == kR + "z");
  CHECK(replace_invalid_utf8("\xF0\x9F\x98") == kR);
  CHECK(replace_invalid_utf8("\xED\xA0\x80") == kR + kR + kR);
  CHECK(replace_invalid_utf8("\xF0\x80\x80\x41") == kR + kR + kR + "A");
  // Table 3-8 of the Unicode standard.
  CHECK(replace_invalid_utf8("\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64") ==
        kR + kR + kR + "b" + kR + "c" + kR + kR + "d");
}

TEST_CASE("an incomplete tail is one that could still become a character") {
  CHECK(incomplete_utf8_tail("") == 0);
  CHECK(incomplete_utf8_tail("abc") == 0);
  CHECK(incomplete_utf8_tail("\u20AC") == 0);
  CHECK(incomplete_utf8_tail("a\xE2") == 1);
  CHECK(incomplete_utf8_tail("a\xE2\x82") == 2);
  CHECK(incomplete_utf8_tail("a\xF0\x9F\x98") == 3);
  CHECK(incomplete_utf8_tail("\xED\xA0") == 0);  // a surrogate cannot be completed
  CHECK(incomplete_utf8_tail("\x80\x80\x80") == 0);
  CHECK(incomplete_utf8_tail("\xC3\xE2") == 1);
}

#include "json/json.h"

#include <doctest/doctest.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/threads/work.h"
#include "support/colliding_keys.h"

using namespace lockstep;

namespace {

std::string round_trip(std::string_view text) {
  const auto value = parse_json(text);
  return value.ok() ? dump_json(value.value()) : "error: " + value.error().message;
}

double number(std::string_view text) {
  const auto value = parse_json(text);
  REQUIRE(value.ok());
  REQUIRE(value.value().is_double());
  return value.value().get_double();
}

// A parser of either width must read exactly `value` from the text, bit for bit.
bool reads_back(float value) {
  std::string text;
  append_json_float(text, value);
  const auto as_double = static_cast<float>(std::strtod(text.c_str(), nullptr));
  float as_float = 0;
  std::from_chars(text.data(), text.data() + text.size(), as_float);
  if (std::fpclassify(value) == FP_SUBNORMAL) as_float = std::strtof(text.c_str(), nullptr);
  const auto bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<uint32_t>(as_double) == bits && std::bit_cast<uint32_t>(as_float) == bits;
}

}  // namespace

TEST_CASE("objects keep their order and print compactly") {
  CHECK(round_trip(" { \"b\" : 1 , \"a\" : [ true, false, null ] } ") ==
        R"({"b":1,"a":[true,false,null]})");
  CHECK(round_trip("{}") == "{}");
  CHECK(round_trip("[[],{},\"\"]") == "[[],{},\"\"]");
}

TEST_CASE("strings and keys may have escapes anywhere") {
  CHECK(round_trip(R"({"\u0061b\u0063":"\u0064e\u0066","":"","\u0061":["\u0062",""]})") ==
        R"({"abc":"def","":"","a":["b",""]})");
}

TEST_CASE("the last of equal keys wins, unless duplicates are refused") {
  CHECK(round_trip(R"({"a":1,"b":2,"a":3})") == R"({"a":3,"b":2})");
  CHECK(parse_json(R"({"a":{"a":1},"b":{"a":1}})", DuplicateKeys::kRefuse).ok());
  for (const char* text : {R"({"a":1,"a":1})", R"([{"x":{"":1,"":2}}])", R"({"a":1,"\u0061":2})"}) {
    CAPTURE(text);
    const auto refused = parse_json(text, DuplicateKeys::kRefuse);
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().message.find("appears twice") != std::string::npos);
  }
}

TEST_CASE("the keys of an object cannot be made to share one chain of its table") {
  const size_t count = 16 * kJsonFieldsMax;
  const std::string flood = object_of(colliding_keys(count));
  const auto refused = parse_large_json(flood);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(refused.error().message.find("colliding hashes") != std::string::npos);
  CHECK_FALSE(parse_large_json(flood, DuplicateKeys::kRefuse).ok());
  CHECK_FALSE(parse_json(flood).ok());

  std::vector<std::string> honest;
  for (size_t i = 0; i < count; ++i) honest.push_back("token " + std::to_string(i));
  const auto read = parse_large_json(object_of(honest), DuplicateKeys::kRefuse);
  REQUIRE(read.ok());
  CHECK(read.value().get_object().size() == count);
  CHECK(find(read.value(), honest.back()) != nullptr);
}

TEST_CASE("an object, and all objects of a text, have a limit of fields") {
  const auto fields = [](size_t count) {
    std::vector<std::string> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back("k" + std::to_string(i));
    return object_of(keys);
  };
  CHECK(parse_json(fields(kJsonFieldsMax)).ok());
  const auto refused = parse_json("[" + fields(kJsonFieldsMax + 1) + "]");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(refused.error().message.find("more than 4096 fields") != std::string::npos);
  const auto objects = [](size_t count, const std::string& one) {
    std::string text = "[";
    for (size_t i = 0; i < count; ++i) text += one + ",";
    return text + "1]";
  };
  CHECK(parse_json(objects(4, fields(kJsonFieldsMax))).ok());
  CHECK_FALSE(parse_json(objects(5, fields(kJsonFieldsMax))).ok());
  CHECK(parse_json(objects(20'000, fields(18))).ok());
}

TEST_CASE("reading JSON ends with the work of its thread") {
  Work work(std::chrono::milliseconds(10'000));
  const Work::Scope scope(work);
  std::string text = "[";
  for (int i = 0; i < 1000; ++i) text += "1,";
  text += "1]";
  CHECK(parse_json(text).ok());
  work.cancel();
  const auto cancelled = parse_json(text);
  REQUIRE_FALSE(cancelled.ok());
  CHECK(cancelled.error().code == ErrorCode::kCancelled);
}

TEST_CASE("a client's text is refused by the memory of its values before it is parsed") {
  std::string text = "[";  // not JSON: it does not end
  for (size_t bytes = 0; bytes <= kParsedBytesMax; bytes += parsed_bytes("0,")) text += "0,";
  REQUIRE(parsed_bytes(text) > kParsedBytesMax);
  const auto refused = parse_untrusted_json(text);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kExhausted);
  CHECK(parse_untrusted_json("[0,0]").ok());
}

TEST_CASE("numbers keep whether they were integers") {
  CHECK(round_trip("[0,-1,9223372036854775807,-9223372036854775808,18446744073709551615]") ==
        "[0,-1,9223372036854775807,-9223372036854775808,18446744073709551615]");
  CHECK(round_trip("[2.0,-0.0,1.5,1e2,1e16,1e-5,0.0001]") ==
        "[2.0,-0.0,1.5,100.0,1e+16,1e-05,0.0001]");
  CHECK(round_trip("18446744073709551616") == "1.8446744073709552e+19");
  CHECK(round_trip("[1e-400,-1e-400]") == "[0.0,-0.0]");
  CHECK(number("5e-324") == std::numeric_limits<double>::denorm_min());
  CHECK(number("1.7976931348623157e308") == std::numeric_limits<double>::max());
}

TEST_CASE("doubles are read correctly rounded and printed so that they read back") {
  CHECK(number("0.1") == 0.1);
  CHECK(number("9007199254740993.0") == 9007199254740992.0);
  CHECK(number("123456789012345680000000000000.0") == 123456789012345680000000000000.0);
  std::mt19937_64 random(1);
  int wrong = 0;
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const auto parsed = parse_json(dump_json(Json(value)));
    const bool is_same =
        parsed.ok() && parsed.value().is_double() &&
        std::bit_cast<uint64_t>(parsed.value().get_double()) == std::bit_cast<uint64_t>(value);
    wrong += is_same ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers that are not finite print as null") {
  CHECK(dump_json(Json(std::nan(""))) == "null");
  CHECK(dump_json(Json(std::numeric_limits<double>::infinity())) == "null");
  std::string text;
  append_json_float(text, -std::numeric_limits<float>::infinity());
  CHECK(text == "null");
}

TEST_CASE("a float32 is read back with the same bits, directly and through a double") {
  std::string text = "[";
  append_json_float(text, 0.1F);
  CHECK(text == "[0.1");
  std::mt19937 random(2);
  int wrong = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(value) && !reads_back(value)) ++wrong;
  }
  for (uint32_t bits = 0; bits < 100'000; ++bits) {  // zero and subnormals
    if (!reads_back(std::bit_cast<float>(bits))) ++wrong;
    if (!reads_back(std::bit_cast<float>(bits * 83 | 0x80000000U))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("strings are escaped, and invalid UTF-8 is never written") {
  std::string text;
  append_json_string(text, std::string_view("a\"\\\n\t\x01\x1f\x7f\0\u20AC", 12));
  CHECK(text == "\"a\\\"\\\\\\n\\t\\u0001\\u001f\x7f\\u0000\u20AC\"");
  text.clear();
  append_json_string(text, "x\xFFy");
  CHECK(text == "\"x\uFFFDy\"");
  CHECK(round_trip(R"("\ud83d\ude00 \u0041")") == "\"\U0001F600 A\"");
}

TEST_CASE("invalid JSON is refused with the byte where it becomes invalid") {
  const auto cut = parse_json("{\"a\":1,]");
  REQUIRE_FALSE(cut.ok());
  CHECK(cut.error().code == ErrorCode::kCorrupt);
  CHECK(cut.error().message.starts_with("invalid JSON at byte 7: "));
  for (const char* text :
       {"", " ", "{", "[1,]", "{\"a\":1,}", "// c\n1", "1 2", "nul", "NaN", "01", "\"\xFF\"",
        "\"\xED\xA0\x80\"", "\"\\ud800\"", "\"\n\"", "1e400", "'a'"}) {
    CAPTURE(text);
    const auto value = parse_json(text);
    REQUIRE_FALSE(value.ok());
    CHECK(value.error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("nesting is limited") {
  const auto nested = [](size_t depth) {
    return parse_json(std::string(depth, '[') + std::string(depth, ']')).ok();
  };
  CHECK(nested(kJsonDepthMax));
  CHECK_FALSE(nested(kJsonDepthMax + 1));
  CHECK_FALSE(nested(1'000'000));
}

TEST_CASE("typed access names the key that is wrong") {
  const auto object = parse_json(R"({"i":3,"d":2.5,"b":true,"s":"t","n":null,"u":1e3,
                                    "big":18446744073709551615})");
  REQUIRE(object.ok());
  const Json& value = object.value();
  CHECK(get_int(value, "i").value() == 3);
  CHECK(get_double(value, "d").value() == 2.5);
  CHECK(get_double(value, "i").value() == 3.0);
  CHECK(get_bool(value, "b").value() == true);
  CHECK(get_string(value, "s").value() == "t");
  CHECK(get_int(value, "n").value() == std::nullopt);
  CHECK(get_int(value, "missing").value() == std::nullopt);
  CHECK(get_string(Json(5), "missing").value() == std::nullopt);
  CHECK(get_int(value, "d").error().message == "\"d\" must be an integer");
  CHECK(get_int(value, "big").error().message == "\"big\" is too large");
  CHECK(get_double(value, "s").error().message == "\"s\" must be a number");
  CHECK(get_bool(value, "i").error().message == "\"i\" must be true or false");
  CHECK(get_string(value, "b").error().message == "\"b\" must be a string");
  CHECK(get_string(value, "b").error().code == ErrorCode::kInvalidArgument);
}

// JSON: an order-preserving value, a strict parser for untrusted bytes, and a writer. A facade over
// Boost.JSON, which no other folder may name. Numbers keep whether they were written as integers.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

using Json = boost::json::value;
using JsonObject = boost::json::object;
using JsonArray = boost::json::array;
using JsonString = boost::json::string;

inline constexpr size_t kJsonDepthMax = 64;

enum class DuplicateKeys { kLastWins, kRefuse };

// Fields of one object. Keys can be made whose hashes collide, which costs up to the square of this
// when the object is made, copied or extended.
inline constexpr size_t kJsonFieldsMax = 4096;

// kCorrupt with the byte offset of the error; invalid UTF-8 is an error too. Integers beyond 64
// bits become the nearest double; numbers beyond the largest double are refused. kExhausted for
// objects beyond kJsonFieldsMax, or many large ones. Errors of Work::check(), which it calls.
Result<Json> parse_json(std::string_view text,
                        DuplicateKeys duplicate_keys = DuplicateKeys::kLastWins);

// For files of models, whose objects may have any number of fields (a vocabulary, a list of
// tensors). kExhausted for a large object whose keys' hashes collide.
Result<Json> parse_large_json(std::string_view text,
                              DuplicateKeys duplicate_keys = DuplicateKeys::kLastWins);

// Limit of parse_untrusted_json(), by parsed_bytes(): 4 million numbers, or 900,000 fields. A
// conversation that fills a large model's context takes a hundredth of that.
inline constexpr size_t kParsedBytesMax = size_t{64} << 20;

// Estimates the memory of a JSON text's values, without their characters: many small values make a
// text grow when it is parsed. Counts the separators.
size_t parsed_bytes(std::string_view text);

// For texts of clients, also those inside other texts (arguments of calls): kExhausted, before
// anything is parsed, beyond kParsedBytesMax.
Result<Json> parse_untrusted_json(std::string_view text);

// Compact (`{"a":1}`); the shortest floats that read back to the same double, 2.0 stays 2.0.
// Non-finite numbers print as null.
std::string dump_json(const Json& value);
// Appends a string literal with quotes; a building block for streams.
void append_json_string(std::string& out, std::string_view text);
std::string json_string(std::string_view text);
// A float that reads back to the same float32.
void append_json_float(std::string& out, float value);

// Nullopt unless `value` is a number within the range of `Number`; an integer type takes no
// fraction.
template <class Number>
std::optional<Number> number_of(const Json& value) {
  boost::system::error_code error;
  const auto number = value.to_number<Number>(error);
  if (error) return std::nullopt;
  return number;
}
inline std::string_view text_of(const JsonString& text) {
  return {text.data(), text.size()};
}

// Null if `value` is not an object or lacks the key.
const Json* find(const Json& value, std::string_view key);

// Typed access with an error that names the key: kInvalidArgument "\"key\" must be an integer".
// Nullopt for a missing key or an explicit null.
Result<std::optional<int64_t>> get_int(const Json& object, std::string_view key);
Result<std::optional<double>> get_double(const Json& object,
                                         std::string_view key);  // takes integers too
Result<std::optional<bool>> get_bool(const Json& object, std::string_view key);
Result<std::optional<std::string>> get_string(const Json& object, std::string_view key);

}  // namespace lockstep

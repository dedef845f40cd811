// The strict parser: Boost.JSON's grammar with our own handler. Boost's handler would use its
// doubles, which in 1.81 are up to a few units off in the last place; ours parses each again,
// correctly rounded.
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <unordered_set>
#include <utility>
#include <vector>

#include "json/json.h"

namespace lockstep {
namespace {

namespace json = boost::json;

// The nearest double; infinity if `text`, a JSON number, is beyond the largest.
double nearest_double(const std::string& text) {
#ifdef __cpp_lib_to_chars
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
#endif
  return std::strtod(text.c_str(), nullptr);  // underflow to zero, or overflow
}

class Handler {
 public:
  static constexpr size_t max_object_size = JsonObject::max_size();
  static constexpr size_t max_array_size = JsonArray::max_size();
  static constexpr size_t max_key_size = json::string::max_size();
  static constexpr size_t max_string_size = json::string::max_size();

  explicit Handler(DuplicateKeys duplicate_keys) : duplicate_keys_(duplicate_keys) {
    stack_.reset();
  }

  Json release() { return stack_.release(); }
  const std::optional<std::string>& duplicate_key() const { return duplicate_key_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    if (duplicate_keys_ == DuplicateKeys::kRefuse) keys_.emplace_back();
    return true;
  }
  bool on_object_end(size_t count, json::error_code&) {
    stack_.push_object(count);
    if (duplicate_keys_ == DuplicateKeys::kRefuse) keys_.pop_back();
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(size_t count, json::error_code&) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(json::string_view part, size_t, json::error_code&) {
    if (duplicate_keys_ == DuplicateKeys::kRefuse) key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, size_t, json::error_code& error) {
    stack_.push_key(part);
    if (duplicate_keys_ == DuplicateKeys::kLastWins) return true;
    key_.append(part.data(), part.size());
    if (keys_.back().insert(key_).second) {
      key_.clear();
      return true;
    }
    duplicate_key_ = key_;
    error = json::error::syntax;
    return false;
  }
  bool on_string_part(json::string_view part, size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, size_t, json::error_code&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    number_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(int64_t value, json::string_view, json::error_code&) {
    number_.clear();
    stack_.push_int64(value);
    return true;
  }
  bool on_uint64(uint64_t value, json::string_view, json::error_code&) {
    number_.clear();
    stack_.push_uint64(value);
    return true;
  }
  bool on_double(double, json::string_view part, json::error_code& error) {
    number_.append(part.data(), part.size());
    const double value = nearest_double(number_);
    number_.clear();
    if (!std::isfinite(value)) {
      error = json::error::exponent_overflow;
      return false;
    }
    stack_.push_double(value);
    return true;
  }
  bool on_bool(bool value, json::error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  json::value_stack stack_;
  DuplicateKeys duplicate_keys_;
  std::vector<std::unordered_set<std::string>> keys_;  // of each open object
  std::string key_;
  std::optional<std::string> duplicate_key_;
  std::string number_;
};

Error not_json(size_t offset, const std::string& why) {
  return {ErrorCode::kCorrupt, "invalid JSON at byte " + std::to_string(offset) + ": " + why};
}

}  // namespace

Result<Json> parse_json(std::string_view text, DuplicateKeys duplicate_keys) try {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::basic_parser<Handler> parser(options, duplicate_keys);
  json::error_code error;
  size_t offset = parser.write_some(false, text.data(), text.size(), error);
  if (!error && offset < text.size()) error = json::error::extra_data;
  if (const auto& key = parser.handler().duplicate_key()) {
    return not_json(offset, "the key \"" + *key + "\" appears twice");
  }
  if (error) return not_json(offset, error.message());
  return parser.handler().release();
} catch (const std::exception& exception) {  // out of memory
  return Error{ErrorCode::kExhausted, std::string("cannot read JSON: ") + exception.what()};
}

}  // namespace lockstep

// The strict parser: Boost.JSON's grammar with our own handler. Boost's handler would use its
// doubles, which in 1.81 are up to a few units off in the last place; ours parses each again,
// correctly rounded.
#include <fmt/core.h>

#include <boost/json/basic_parser_impl.hpp>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/double_chars.h"
#include "base/threads/work.h"
#include "json/json.h"

namespace lockstep {
namespace {

namespace json = boost::json;

// The nearest double; infinity if `text`, a JSON number, is beyond the largest.
double nearest_double(const std::string& text) {
  double value = 0;
  const auto [end, error] = double_from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
  return std::strtod(text.c_str(), nullptr);  // underflow to zero, or overflow
}

// Sizes in memory: a value, a field with its name, an array or object.
constexpr size_t kValueBytes = 16;
constexpr size_t kFieldBytes = 56;
constexpr size_t kContainerBytes = 48;

// An object of n fields may cost the square of n: Boost.JSON salts its hash, which anyone can
// compute, with nothing but the address of the object's table, so that keys can be made that all
// fall into one chain. These limits bound that work, here and for whoever copies the object later.
constexpr size_t kFieldSquaresMax = size_t{1} << 26;  // of a text, summed over its objects
// For a large object the keys passed on the way to a key's place are counted instead. With keys
// that were not made for this, they are half as many as the fields.
constexpr size_t kChainStepsPerField = 16;
constexpr size_t kEventsPerCheck = 64;

// Counts the keys that the table of a large object passes while it is filled.
class ChainCount {
 public:
  // `object` is empty, and has room for all its fields.
  explicit ChainCount(const JsonObject& object)
      : salt_(reinterpret_cast<uintptr_t>(object.begin()) - kTableHeadBytes),
        lengths_(object.capacity()) {}

  // The keys in front of `key`; `steps_before_insert` first, then `inserted`.
  size_t steps_before_insert(std::string_view key) {
    uint64_t hash = 0xcbf29ce484222325 + salt_;
    for (const char c : key) hash = (static_cast<uint64_t>(c) ^ hash) * 0x100000001B3;
    bucket_ = hash % lengths_.size();
    return lengths_[bucket_];
  }
  void inserted() { ++lengths_[bucket_]; }

 private:
  // Boost.JSON's head of a table: two counts, and the salt, which is the table's own address.
  static constexpr size_t kTableHeadBytes = 2 * sizeof(uint32_t) + sizeof(uintptr_t);

  const uint64_t salt_;
  std::vector<uint32_t> lengths_;  // by bucket
  size_t bucket_ = 0;
};

class Handler {
 public:
  static constexpr size_t max_object_size = JsonObject::max_size();
  static constexpr size_t max_array_size = JsonArray::max_size();
  static constexpr size_t max_key_size = json::string::max_size();
  static constexpr size_t max_string_size = json::string::max_size();

  Handler(DuplicateKeys duplicate_keys, bool is_large)
      : duplicate_keys_(duplicate_keys), is_large_(is_large) {}

  Json release() { return std::move(values_.front()); }
  // Why it stopped; nullopt: the text is not JSON.
  const std::optional<Error>& failure() const { return failure_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code& error) {
    fields_.push_back(0);
    return goes_on(error);
  }
  bool on_object_end(size_t count, json::error_code& error) {
    fields_.pop_back();
    if (!is_large_) {
      squares_ += count * count;
      if (squares_ > kFieldSquaresMax) {
        return fail(error, {ErrorCode::kExhausted, "its objects have too many fields"});
      }
    }
    JsonObject object;
    object.reserve(count);
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(2 * count);
    if (!fill(object, std::span(first, values_.end()), error)) return false;
    values_.erase(first, values_.end());
    values_.emplace_back(std::move(object));
    return true;
  }
  bool on_array_begin(json::error_code& error) { return goes_on(error); }
  bool on_array_end(size_t count, json::error_code&) {
    const auto first = values_.end() - static_cast<std::ptrdiff_t>(count);
    JsonArray array(std::make_move_iterator(first), std::make_move_iterator(values_.end()));
    values_.erase(first, values_.end());
    values_.emplace_back(std::move(array));
    return true;
  }
  bool on_key_part(json::string_view part, size_t, json::error_code&) { return add_part(part); }
  bool on_key(json::string_view part, size_t, json::error_code& error) {
    add_text(part);
    if (++fields_.back() > kJsonFieldsMax && !is_large_) {
      return fail(error, {ErrorCode::kExhausted,
                          fmt::format("an object has more than {} fields", kJsonFieldsMax)});
    }
    return goes_on(error);
  }
  bool on_string_part(json::string_view part, size_t, json::error_code&) { return add_part(part); }
  bool on_string(json::string_view part, size_t, json::error_code& error) {
    add_text(part);
    return goes_on(error);
  }
  bool on_number_part(json::string_view part, json::error_code&) {
    number_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(int64_t value, json::string_view, json::error_code& error) {
    number_.clear();
    values_.emplace_back(value);
    return goes_on(error);
  }
  bool on_uint64(uint64_t value, json::string_view, json::error_code& error) {
    number_.clear();
    values_.emplace_back(value);
    return goes_on(error);
  }
  bool on_double(double, json::string_view part, json::error_code& error) {
    number_.append(part.data(), part.size());
    const double value = nearest_double(number_);
    number_.clear();
    if (!std::isfinite(value)) {
      error = json::error::exponent_overflow;
      return false;
    }
    values_.emplace_back(value);
    return goes_on(error);
  }
  bool on_bool(bool value, json::error_code& error) {
    values_.emplace_back(value);
    return goes_on(error);
  }
  bool on_null(json::error_code& error) {
    values_.emplace_back(nullptr);
    return goes_on(error);
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  bool fail(json::error_code& error, Error why) {
    failure_ = std::move(why);
    error = json::error::syntax;
    return false;
  }

  // The work of the thread's request goes on.
  bool goes_on(json::error_code& error) {
    if (++events_ % kEventsPerCheck != 0) return true;
    const Status work = Work::check();
    return work.ok() || fail(error, work.error());
  }

  bool add_part(json::string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  void add_text(json::string_view part) {
    if (text_.empty()) return void(values_.emplace_back(part));
    add_part(part);
    values_.emplace_back(json::string_view(text_));
    text_.clear();
  }

  // `fields`: a key, its value, the next key... The last of equal keys gets the first one's place.
  bool fill(JsonObject& object, std::span<Json> fields, json::error_code& error) {
    const size_t count = fields.size() / 2;
    std::optional<ChainCount> chains;
    if (count > kJsonFieldsMax) chains.emplace(object);
    size_t steps = 0;
    for (size_t i = 0; i < fields.size(); i += 2) {
      if (!goes_on(error)) return false;
      const json::string& key = fields[i].get_string();
      if (chains) steps += chains->steps_before_insert(key);
      if (steps > kChainStepsPerField * count) {
        return fail(error, {ErrorCode::kExhausted, "the keys of an object have colliding hashes"});
      }
      const auto [field, is_new] = object.emplace(key, std::move(fields[i + 1]));
      if (chains && is_new) chains->inserted();
      if (is_new) continue;
      if (duplicate_keys_ == DuplicateKeys::kRefuse) {
        return fail(error,
                    {ErrorCode::kCorrupt,
                     "the key \"" + std::string(key.c_str(), key.size()) + "\" appears twice"});
      }
      field->value() = std::move(fields[i + 1]);
    }
    return true;
  }

  const DuplicateKeys duplicate_keys_;
  const bool is_large_;
  std::vector<Json> values_;    // complete, of open arrays and objects; an object's keys too
  std::vector<size_t> fields_;  // counts of each open object
  size_t squares_ = 0;
  size_t events_ = 0;
  std::string text_;  // of a key or string that comes in parts
  std::string number_;
  std::optional<Error> failure_;
};

Error not_json(size_t offset, ErrorCode code, const std::string& why) {
  return {code, "invalid JSON at byte " + std::to_string(offset) + ": " + why};
}

Result<Json> parse(std::string_view text, DuplicateKeys duplicate_keys, bool is_large) try {
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::basic_parser<Handler> parser(options, duplicate_keys, is_large);
  json::error_code error;
  size_t offset = parser.write_some(false, text.data(), text.size(), error);
  if (!error && offset < text.size()) error = json::error::extra_data;
  if (const auto& failure = parser.handler().failure()) {
    if (failure->code == ErrorCode::kCancelled) return *failure;
    return not_json(offset, failure->code, failure->message);
  }
  if (error) return not_json(offset, ErrorCode::kCorrupt, error.message());
  return parser.handler().release();
} catch (const std::exception& exception) {  // out of memory
  return Error{ErrorCode::kExhausted, std::string("cannot read JSON: ") + exception.what()};
}

}  // namespace

size_t parsed_bytes(std::string_view text) {
  size_t bytes = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':  // to the quote that ends it
        do {
          i = text.find_first_of("\\\"", i + 1);
          if (i == std::string_view::npos) return bytes;
        } while (text[i] == '\\' && ++i < text.size());
        break;
      case ',':
        bytes += kValueBytes;
        break;
      case ':':
        bytes += kFieldBytes;
        break;
      case '{':
      case '[':
        bytes += kContainerBytes;
        break;
      default:
        break;
    }
  }
  return bytes;
}

Result<Json> parse_json(std::string_view text, DuplicateKeys duplicate_keys) {
  return parse(text, duplicate_keys, false);
}

Result<Json> parse_large_json(std::string_view text, DuplicateKeys duplicate_keys) {
  return parse(text, duplicate_keys, true);
}

Result<Json> parse_untrusted_json(std::string_view text) {
  if (const size_t bytes = parsed_bytes(text); bytes > kParsedBytesMax) {
    return Error{ErrorCode::kExhausted, fmt::format("the JSON's values take {} MiB of memory, and "
                                                    "{} MiB is the maximum",
                                                    bytes >> 20, kParsedBytesMax >> 20)};
  }
  return parse_json(text);
}

}  // namespace lockstep

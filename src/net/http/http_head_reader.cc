#include "net/http/http_head_reader.h"

#include <algorithm>
#include <utility>

namespace lockstep {

HttpHeadReader::HttpHeadReader(Kind kind, HttpHeadLimits limits, std::string_view what)
    : kind_(kind), limits_(limits), what_(what), has_first_line_(kind == Kind::kTrailer) {}

void HttpHeadReader::reset() {
  state_ = State::kReading;
  has_first_line_ = kind_ == Kind::kTrailer;
  bytes_ = 0;
  line_.clear();
  first_line_.clear();
  fields_.clear();
}

size_t HttpHeadReader::feed(std::string_view bytes) {
  size_t taken = 0;
  while (state_ == State::kReading && taken < bytes.size()) {
    const std::string_view rest = bytes.substr(taken);
    const size_t end = rest.find('\n');
    const size_t count = std::min(end, rest.size() - 1) + 1;  // npos: all of it
    bytes_ += count;
    taken += count;
    if (bytes_ > limits_.bytes_max) {
      fail(431, what_ + " is larger than " + std::to_string(limits_.bytes_max) + " bytes");
      break;
    }
    line_.append(rest.substr(0, count));
    // Such input is not HTTP, and may never contain a line end.
    if (!has_first_line_ && !is_token_char(line_.front())) {
      fail_malformed("it does not begin with a method or a version");
    } else if (end != std::string_view::npos) {
      end_line();
    }
  }
  return taken;
}

void HttpHeadReader::end_line() {
  std::string_view line = line_;
  line.remove_suffix(1);
  if (line.empty() || line.back() != '\r') return fail_malformed("a line does not end with CR LF");
  line.remove_suffix(1);
  if (!is_field_text(line)) return fail_malformed("a line has a control character");
  if (!std::exchange(has_first_line_, true)) {
    first_line_ = line;
  } else if (line.empty()) {
    state_ = State::kDone;
  } else {
    add_field(line);
  }
  line_.clear();
}

void HttpHeadReader::add_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {
    return fail_malformed("a header line is folded into two");
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return fail_malformed("a header line has no colon");
  if (!is_token(line.substr(0, colon))) {
    return fail_malformed(
        "a header's name is not followed by its colon or has a character that "
        "does not belong there");
  }
  if (fields_.size() >= limits_.fields_max) {
    return fail(431, what_ + " has more than " + std::to_string(limits_.fields_max) + " lines");
  }
  std::string name(line.substr(0, colon));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  value = value.substr(0, value.find_last_not_of(" \t") + 1);
  fields_.emplace_back(std::move(name), value);
}

void HttpHeadReader::fail_malformed(std::string_view why) {
  fail(400, what_ + " is not valid HTTP: " + std::string(why));
}

void HttpHeadReader::fail(int status, std::string message) {
  state_ = State::kFailed;
  failure_ = {status, std::move(message)};
}

}  // namespace lockstep

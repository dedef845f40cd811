// Calls of built-in tools, as Llama 3 writes them: brave_search.call(query="x").
#include <cctype>
#include <optional>

#include "chat/calls/call_reader.h"

namespace lockstep {
namespace {

constexpr std::string_view kCall = ".call(";

bool is_identifier_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

class PythonArguments {
 public:
  explicit PythonArguments(std::string_view text) : text_(text) {}

  // Converts `key="value", key=1)` to a JSON object; nullopt for anything else.
  std::optional<std::string> read() {
    std::string object = "{";
    while (!take(')')) {
      if (object.size() > 1) {
        if (!take(',')) return std::nullopt;
        object += ", ";
      }
      const std::string key = read_key();
      if (key.empty() || !take('=')) return std::nullopt;
      append_json_string(object, key);
      object += ": ";
      if (!read_value(object)) return std::nullopt;
    }
    if (!without_blanks(text_.substr(at_)).empty()) return std::nullopt;
    return object + "}";
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && kBlanks.find(text_[at_]) != std::string_view::npos) ++at_;
  }

  bool take(char letter) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  std::string read_key() {
    skip_blanks();
    std::string key;
    while (at_ < text_.size() && is_identifier_letter(text_[at_])) key += text_[at_++];
    return key;
  }

  bool read_value(std::string& out) {
    skip_blanks();
    if (at_ == text_.size()) return false;
    if (text_[at_] == '\'' || text_[at_] == '"') return read_string(out);
    std::string json;
    JsonScanner scanner;
    at_ += scanner.push(text_.substr(at_), json);
    if (scanner.state() != JsonScanner::State::kComplete) return false;
    const std::string value = value_as_json(json, kJsonAny & ~kJsonString);
    if (!parse_json(value).ok() || value.front() == '"') return false;
    out += value;
    return true;
  }

  bool read_string(std::string& out) {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char letter = text_[++at_];
        if (letter == 'n' || letter == 't') {
          value += letter == 'n' ? '\n' : '\t';
        } else {
          value += letter;
        }
        ++at_;
      } else {
        value += text_[at_++];
      }
    }
    append_json_string(out, value);
    return take(quote);
  }

  const std::string_view text_;
  size_t at_ = 0;
};

class PythonCallReader final : public CallReader {
 public:
  explicit PythonCallReader(const CallContext& context) : context_(context) {}

  Progress read(PendingText& pending, DeltaWriter& out) override {
    const std::string_view rest = pending.rest();
    size_t size = 0;
    while (size < rest.size() && is_identifier_letter(rest[size])) ++size;
    const std::string_view behind = rest.substr(size, kCall.size());
    if (behind != kCall.substr(0, behind.size()) || size > kNameBytesMax) return Progress::kNoCall;
    if (pending.held_bytes() > kHeldBytesMax) return Progress::kNoCall;
    if (!pending.has_ended()) return Progress::kMore;
    if (behind != kCall || !is_call_name(context_, rest.substr(0, size))) return Progress::kNoCall;
    const auto arguments = PythonArguments(rest.substr(size + kCall.size())).read();
    if (!arguments) return Progress::kNoCall;
    out.call(rest.substr(0, size), "");
    ArgumentsWriter().write(*arguments, out);
    pending.take(rest.size());
    pending.unmark();
    return Progress::kDone;
  }

 private:
  const CallContext context_;
};

}  // namespace

std::unique_ptr<CallReader> make_python_call_reader(const CallContext& context) {
  return std::make_unique<PythonCallReader>(context);
}

}  // namespace lockstep

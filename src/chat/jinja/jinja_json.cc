// JSON to values and back; matches json.dumps exactly.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "chat/jinja/jinja_print.h"
#include "chat/text/characters.h"

namespace lockstep::jinja {
namespace {

class DumpsWriter {
 public:
  DumpsWriter(Heap& heap, LimitedText& out, const DumpsOptions& options)
      : heap_(heap), out_(out), options_(options) {
    item_separator_ = options.item_separator.value_or(options.indent ? "," : ", ");
  }

  Status write(const Value& value, int depth) {
    if (depth > kValueDepthMax) return jinja_error("a value is nested too deeply for JSON");
    if (out_.overflowed()) return Ok{};
    switch (value.kind) {
      case Kind::kText:
        write_text(*value.text);
        return Ok{};
      case Kind::kList:
        if (value.list->shape != Shape::kGenerator) return write_list(*value.list, depth);
        break;
      case Kind::kDict:
        return write_dict(*value.dict, depth);
      case Kind::kNone:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kFloat:
        put(scalar(value));
        return Ok{};
      default:
        break;
    }
    return jinja_error(fmt::format("Object of type {} is not JSON serializable", type_name(value)));
  }

 private:
  void put(std::string_view text) { out_.append(text, false); }

  static std::string scalar(const Value& value) {
    if (value.is(Kind::kNone)) return "null";
    if (value.is(Kind::kBool)) return value.truth ? "true" : "false";
    if (value.is(Kind::kInt)) return fmt::format("{}", value.integer);
    if (std::isnan(value.floating)) return "NaN";
    if (std::isinf(value.floating)) return value.floating < 0 ? "-Infinity" : "Infinity";
    return python_float(value.floating);
  }

  void begin_line(int depth) {
    if (!options_.indent) return;
    put("\n");
    for (int level = 0; level < depth && !out_.overflowed(); ++level) put(*options_.indent);
  }

  Status write_list(const List& list, int depth) {
    put("[");
    for (size_t i = 0; i < list.items.size(); ++i) {
      if (i > 0) put(item_separator_);
      begin_line(depth + 1);
      TRY(write(list.items[i], depth + 1));
    }
    if (!list.items.empty()) begin_line(depth);
    put("]");
    return Ok{};
  }

  bool is_plain() const {
    return !options_.indent && !options_.item_separator && !options_.sort_keys &&
           !options_.ensure_ascii && options_.key_separator == DumpsOptions().key_separator;
  }

  Status write_dict(const Dict& dict, int depth) {
    if (!dict.json_text().empty() && is_plain()) {
      out_.append(dict.json_text(), true);
      return Ok{};
    }
    std::vector<const Pair*> entries;
    for (const Pair& entry : dict.entries()) entries.push_back(&entry);
    if (options_.sort_keys) {
      for (const Pair* entry : entries) {
        const auto comparable = jinja_less(heap_, entry->first, entries[0]->first);
        if (!comparable.ok()) return comparable.error();
      }
      std::stable_sort(entries.begin(), entries.end(), [this](const auto* left, const auto* right) {
        const auto less = jinja_less(heap_, left->first, right->first);
        return less.ok() && less.value();
      });
    }
    put("{");
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) put(item_separator_);
      begin_line(depth + 1);
      TRY(write_key(entries[i]->first));
      put(options_.key_separator);
      TRY(write(entries[i]->second, depth + 1));
    }
    if (!entries.empty()) begin_line(depth);
    put("}");
    return Ok{};
  }

  Status write_key(const Value& key) {
    if (key.is(Kind::kText)) {
      write_text(*key.text);
    } else if (key.is_number() || key.is(Kind::kNone)) {
      put("\"" + scalar(key) + "\"");
    } else {
      return jinja_error(
          fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
    }
    return Ok{};
  }

  void write_text(const MarkedText& text) {
    put("\"");
    for (const PromptPiece& piece : text.pieces()) write_piece(piece);
    put("\"");
  }

  void write_piece(const PromptPiece& piece) {
    const std::string_view text = piece.text;
    size_t plain = 0;
    for (size_t at = 0; at < text.size() && !out_.overflowed();) {
      const unsigned char byte = static_cast<unsigned char>(text[at]);
      const bool escape =
          byte < 0x20 || byte == '"' || byte == '\\' || (options_.ensure_ascii && byte >= 0x80);
      if (!escape) {
        ++at;
        continue;
      }
      out_.append(text.substr(plain, at - plain), piece.is_from_input);
      const Utf8Character character = first_utf8_character(text.substr(at));
      out_.append(escaped(character.code_point), piece.is_from_input);
      at += character.bytes;
      plain = at;
    }
    out_.append(text.substr(plain), piece.is_from_input);
  }

  static std::string escaped(uint32_t code_point) {
    switch (code_point) {
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      case '\n':
        return "\\n";
      case '\r':
        return "\\r";
      case '\t':
        return "\\t";
      case '\f':
        return "\\f";
      case '\b':
        return "\\b";
      default:
        break;
    }
    if (code_point < 0x10000) return fmt::format("\\u{:04x}", code_point);
    const uint32_t pair = code_point - 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (pair >> 10), 0xDC00 + (pair & 0x3FF));
  }

  Heap& heap_;
  LimitedText& out_;
  const DumpsOptions& options_;
  std::string item_separator_;
};

}  // namespace

Result<MarkedText> jinja_dumps(Heap& heap, const Value& value, const DumpsOptions& options) {
  LimitedText out(std::min(heap.bytes_left(), kPromptBytesMax));
  TRY(DumpsWriter(heap, out, options).write(value, 0));
  if (out.overflowed()) return Error{ErrorCode::kExhausted, "a value is too long as JSON"};
  return std::move(out.text());
}

Value from_json_value(Heap& heap, const Json& json, bool is_from_input, const JsonTexts* texts) {
  if (json.is_null()) return Value();
  if (json.is_bool()) return Value::boolean(json.get_bool());
  if (json.is_int64()) return Value::of(json.get_int64());
  if (json.is_number()) return Value::of(json.to_number<double>());
  if (json.is_string()) {
    const auto& text = json.get_string();
    return heap.text(std::string_view(text.data(), text.size()), is_from_input);
  }
  if (json.is_array()) {
    std::vector<Value> items;
    for (const Json& item : json.get_array()) {
      items.push_back(from_json_value(heap, item, is_from_input, texts));
    }
    return heap.list(std::move(items));
  }
  Value dict = heap.dict();
  for (const auto& entry : json.get_object()) {
    const std::string_view key(entry.key().data(), entry.key().size());
    dict.dict->set(heap.text(key, is_from_input),
                   from_json_value(heap, entry.value(), is_from_input, texts));
  }
  if (texts == nullptr) return dict;
  if (const auto text = texts->find(&json.get_object()); text != texts->end()) {
    heap.charge_bytes(text->second.size());
    dict.dict->set_json_text(text->second);
  }
  return dict;
}

}  // namespace lockstep::jinja

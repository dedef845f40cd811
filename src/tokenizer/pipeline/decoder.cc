#include "tokenizer/pipeline/decoder.h"

#include <charconv>
#include <utility>

#include "tokenizer/text/json_part.h"

namespace lockstep {
namespace {

constexpr std::string_view kDecoderPart = "decoder";
constexpr std::string_view kDecoderSpaceMark = "\xE2\x96\x81";  // U+2581
constexpr size_t kReplacementsMax = 64;

// "<0x0A>" as 10.
std::optional<uint8_t> byte_of(std::string_view token) {
  const bool has_form = token.size() == 6 && token.starts_with("<0x") && token.back() == '>';
  if (!has_form) return std::nullopt;
  uint8_t byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  const bool is_hex = error == std::errc() && end == token.data() + 5;
  return is_hex ? std::optional(byte) : std::nullopt;
}

}  // namespace

Result<Decoder> Decoder::read(const Json* value) {
  // Without a decoder Hugging Face joins the tokens with spaces, which is wrong for language
  // models.
  if (is_missing(value)) return unsupported_part(kDecoderPart, "null");
  Decoder decoder;
  TRY(decoder.add(*value));
  TRY(check_growth(kDecoderPart, decoder.replacements_));
  return decoder;
}

Decoder Decoder::sentence_piece(bool strips_leading_space) {
  Decoder decoder;
  decoder.replacements_.push_back({std::string(kDecoderSpaceMark), " "});
  decoder.has_byte_tokens_ = true;
  decoder.stage_ = strips_leading_space ? Stage::kStripped : Stage::kFused;
  return decoder;
}

Decoder Decoder::byte_level() {
  Decoder decoder;
  decoder.is_byte_level_ = true;
  return decoder;
}

std::string Decoder::token_bytes(std::string_view token) const {
  std::string text(token);
  if (is_byte_level_) return text;
  if (!continuation_.empty()) {
    const bool continues = token.starts_with(continuation_);
    return continues ? text.substr(continuation_.size()) : " " + text;
  }
  for (const Replacement& replacement : replacements_) text = replace_all(text, replacement);
  if (!has_byte_tokens_) return text;
  const auto byte = byte_of(text);
  return byte ? std::string(1, static_cast<char>(*byte)) : text;
}

// JSON's depth limit bounds the recursion through sequences.
Status Decoder::add(const Json& value) {
  const std::string_view type = TRY(type_of(kDecoderPart, value));
  if (type == "Sequence") {
    const Json* parts = find(value, "decoders");
    if (parts == nullptr || !parts->is_array())
      return corrupt_part(kDecoderPart, "Sequence has no parts");
    for (const Json& part : parts->get_array()) TRY(add(part));
    return Ok{};
  }
  if (type == "Strip") return add_strip(value);
  const bool is_first = stage_ == Stage::kPerToken && replacements_.empty();
  if (type == "ByteLevel" && is_first) {
    is_byte_level_ = true;
    stage_ = Stage::kFused;
    return Ok{};
  }
  if (type == "Metaspace" && is_first) return add_metaspace(value);
  if (type == "WordPiece" && is_first) return add_word_piece(value);
  if (type == "Fuse" && stage_ < Stage::kFused) {
    stage_ = Stage::kFused;
    return Ok{};
  }
  if (type == "ByteFallback" && stage_ == Stage::kPerToken) {
    stage_ = Stage::kBytes;
    has_byte_tokens_ = true;
    return Ok{};
  }
  const bool may_replace = stage_ == Stage::kPerToken && replacements_.size() < kReplacementsMax;
  if (type == "Replace" && may_replace) {
    replacements_.push_back(TRY(read_replacement(kDecoderPart, value)));
    return Ok{};
  }
  return unsupported_part(kDecoderPart, std::string(type) + " at this place");
}

Status Decoder::add_strip(const Json& value) {
  const std::string content = TRY(required_string(kDecoderPart, value, "content"));
  const auto start = get_int(value, "start");
  const auto stop = get_int(value, "stop");
  if (!start.ok() || !stop.ok()) return corrupt_part(kDecoderPart, "has a Strip without numbers");
  const bool is_dummy_space = content == " " && start.value() == 1 && stop.value() == 0;
  if (!is_dummy_space || stage_ != Stage::kFused) {
    return unsupported_part(kDecoderPart, "Strip of anything but one space at the beginning");
  }
  stage_ = Stage::kStripped;
  return Ok{};
}

Status Decoder::add_metaspace(const Json& value) {
  std::string mark = TRY(required_string(kDecoderPart, value, "replacement"));
  if (mark.empty()) return corrupt_part(kDecoderPart, "Metaspace has an empty replacement");
  const auto scheme = get_string(value, "prepend_scheme");
  if (!scheme.ok()) return corrupt_part(kDecoderPart, "is wrong: " + scheme.error().message);
  const bool prepends = scheme.value()
                            ? *scheme.value() != "never"
                            : TRY(flag_or(kDecoderPart, value, "add_prefix_space", true));
  replacements_.push_back({std::move(mark), " "});
  stage_ = prepends ? Stage::kStripped : Stage::kFused;
  return Ok{};
}

Status Decoder::add_word_piece(const Json& value) {
  continuation_ = TRY(required_string(kDecoderPart, value, "prefix"));
  if (continuation_.empty()) return corrupt_part(kDecoderPart, "WordPiece has an empty prefix");
  stage_ = Stage::kStripped;
  return Ok{};
}

}  // namespace lockstep

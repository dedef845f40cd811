// links: tokenizer
// Two halves: a tokenizer from the input, and the input as text and as ids for a fixed tokenizer
// that can encode every text. A GGUF file, a SentencePiece model, a tiktoken file or JSON is
// recognised by its first bytes as in Tokenizer::load(); a text (0xFF, then the text) may follow
// JSON and ranks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "json/json.h"
#include "tokenizer/formats.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer_checks.h"

using namespace lockstep;

namespace {

constexpr char kSeparator = '\xFF';
constexpr std::string_view kBinaryText = "ab <s> a\u0301 ▁b<0x0A>\n 123\xE4\xBD\xA0 x";

// All bytes, "\u2581", a few letters and merges, and Llama's normalizer and decoder.
std::string fixed_json() {
  std::string vocab = R"("<unk>":0,"<s>":1,"▁":2,"a":3,"b":4,"▁a":5,"ab":6,"▁ab":7,"▁▁":8)";
  for (int byte = 0; byte < 256; ++byte) vocab += fmt::format(",\"<0x{:02X}>\":{}", byte, 9 + byte);
  return R"({"added_tokens":[{"id":1,"content":"<s>","special":true,"normalized":false}],
    "normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
      {"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
    "decoder":{"type":"Sequence","decoders":[
      {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
      {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
    "model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,
      "vocab":{)" +
         vocab + R"(},"merges":["▁ a","a b","▁ ab","▁a b","▁ ▁"]}})";
}

std::shared_ptr<const Tokenizer> fixed_tokenizer() {
  auto tokenizer = Tokenizer::parse(fixed_json());
  LOCKSTEP_CHECK(tokenizer.ok());
  return tokenizer.value();
}

// "\u2581" in a text decodes to a space: it is SentencePiece's mark, and the text's own cannot be
// distinguished.
std::string with_spaces(std::string text) {
  constexpr std::string_view kMark = "▁";
  for (size_t at = text.find(kMark); at != std::string::npos; at = text.find(kMark, at)) {
    text.replace(at, kMark.size(), " ");
  }
  return text;
}

TokenizerResult read_any(std::string_view file) {
  const auto bytes = std::as_bytes(std::span(file));
  if (GgufFile::has_magic(bytes)) {
    const auto gguf = GgufFile::parse(bytes);
    return gguf.ok() ? read_gguf_tokenizer(gguf.value(), "") : TokenizerResult(gguf.error());
  }
  if (file.starts_with('\n')) return read_sentence_piece(file);
  if (!file.starts_with('{')) return read_tiktoken(file, nullptr, "");
  const auto document = parse_json(file);
  if (!document.ok()) return document.error();
  const bool is_tekken = find(document.value(), "config") != nullptr;
  return is_tekken ? read_tekken(document.value()) : read_json_tokenizer(document.value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto fixed = fixed_tokenizer();
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_text(fixed, input);
  const auto decoded = fixed->decode(fixed->encode(input, {}));
  LOCKSTEP_CHECK(decoded.ok());
  LOCKSTEP_CHECK(decoded.value() == with_spaces(replace_invalid_utf8(input)));
  std::vector<int32_t> ids;
  for (size_t i = 0; i < size; ++i) ids.push_back((data[i] * 7 + static_cast<int>(i)) % 265);
  check_stream(fixed, ids);

  const bool is_binary = input.starts_with("GGUF") || input.starts_with('\n');
  const size_t separator =
      is_binary ? input.size() : std::min(input.find(kSeparator), input.size());
  const auto parsed = read_any(input.substr(0, separator));
  if (parsed.ok()) {
    check_text(parsed.value(), is_binary ? kBinaryText : input.substr(separator));
  }
  return 0;
}

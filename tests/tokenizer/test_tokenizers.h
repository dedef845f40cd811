// Tokenizers for the tests of this folder: stories260K's, and variants of a tiny one.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/mapped_file.h"
#include "json/json.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;

inline Json read_json(const std::string& path) {
  const auto file = MappedFile::open(path);
  REQUIRE(file.ok());
  const auto bytes = file.value().bytes();
  auto json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  REQUIRE(json.ok());
  return json.value();
}

inline Ids ids_of(const Json& value) {
  Ids ids;
  for (const Json& id : value.get_array()) ids.push_back(static_cast<int32_t>(id.get_int64()));
  return ids;
}

inline std::shared_ptr<const Tokenizer> stories_tokenizer() {
  auto tokenizer = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/models/stories260K");
  REQUIRE(tokenizer.ok());
  return tokenizer.value();
}

// "ab" and "abc" are merged; "\u2581" is a space; everything else is unknown. Llama's normalizer
// and decoder.
inline constexpr const char* kTinyTokenizer = R"({
  "added_tokens": [{"id": 0, "content": "<unk>", "special": true, "normalized": false}],
  "normalizer": {"type": "Sequence", "normalizers": [
    {"type": "Prepend", "prepend": "▁"},
    {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
  "pre_tokenizer": null,
  "post_processor": null,
  "decoder": {"type": "Sequence", "decoders": [
    {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
    {"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
  "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false,
    "vocab": {"<unk>": 0, "a": 1, "b": 2, "c": 3, "▁": 4, "ab": 5, "abc": 6, "▁a": 7},
    "merges": ["a b", ["ab", "c"], "▁ a"]}})";

// The tiny tokenizer with the value at `keys` replaced or added.
inline std::string tiny_with(const std::vector<std::string>& keys, const std::string& value) {
  auto document = parse_json(kTinyTokenizer);
  auto replacement = parse_json(value);
  REQUIRE(document.ok());
  REQUIRE(replacement.ok());
  Json* place = &document.value();
  for (const std::string& key : keys) place = &place->get_object()[key];
  *place = replacement.value();
  return dump_json(document.value());
}

inline std::shared_ptr<const Tokenizer> parse_tokenizer(const std::string& json) {
  auto tokenizer = Tokenizer::parse(json);
  if (!tokenizer.ok()) FAIL(tokenizer.error().message);
  return tokenizer.value();
}

}  // namespace lockstep

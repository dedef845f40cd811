// Prompts made of template text and user text.
#include <string>

#include "tokenizer/test_tokenizers.h"

using namespace lockstep;

namespace {

// Bytes "a", "b", " " and "<", ">", "s"; "ab" merges; "<s>" is special, "<sp>" strips white space.
std::shared_ptr<const Tokenizer> byte_tokenizer() {
  return parse_tokenizer(R"({
    "added_tokens": [
      {"id": 20, "content": "<s>", "special": true, "normalized": false},
      {"id": 21, "content": "<b>", "special": true, "rstrip": true, "normalized": true},
      {"id": 22, "content": "aa", "special": false, "normalized": false}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "ignore_merges": true,
      "vocab": {"a": 0, "b": 1, "Ġ": 2, "<": 3, ">": 4, "s": 5, "ab": 6, "<s>": 20, "<s": 8},
      "merges": ["a b", "< s", "<s >"]}})");
}

Ids encode(const std::vector<PromptText>& pieces) {
  return byte_tokenizer()->encode_pieces(pieces, false);
}

}  // namespace

TEST_CASE("tokens merge across the borders of pieces") {
  CHECK(encode({{"a", true}, {"b", false}}) == Ids{6});
  CHECK(encode({{"a", false}, {"", true}, {"b", true}}) == Ids{6});
  CHECK(encode({{"a", false}, {"a", true}}) == Ids{22});  // a plain added token too
  CHECK(encode({}) == Ids{});
}

TEST_CASE("typed text never becomes a special token, not even joined with template text") {
  CHECK(encode({{"<s>", true}}) == Ids{20});
  CHECK(encode({{"<s>", false}}) == Ids{8, 4});
  CHECK(encode({{"<", true}, {"s>", false}}) == Ids{8, 4});
  CHECK(encode({{"<s", false}, {">", true}}) == Ids{8, 4});
  CHECK(encode({{"<", true}, {"s", false}, {">", true}}) == Ids{8, 4});
  CHECK(encode({{"<s", true}, {">", true}}) == Ids{20});  // both from the template
  CHECK(encode({{"<s>", true}, {"<s>", false}, {"<s>", true}}) == Ids{20, 8, 4, 20});
}

TEST_CASE("a merge that gives a special token, and a piece equal to one, stay plain") {
  // The file's merges and its ignore_merges would both turn the text into 20.
  CHECK(byte_tokenizer()->encode("<s>", {}) == Ids{8, 4});
  CHECK(byte_tokenizer()->encode("<s>", {.parse_special = true}) == Ids{20});
}

TEST_CASE("a special token strips white space of the template only") {
  CHECK(encode({{"<b>  ", true}, {"a", false}}) == Ids{21, 0});
  CHECK(encode({{"<b> ", true}, {" a", false}}) == Ids{21, 2, 0});
}

TEST_CASE("invalid UTF-8 in a piece does not affect the next one") {
  const auto tokenizer = byte_tokenizer();
  CHECK(
      tokenizer->encode_pieces(std::vector<PromptText>{{"a\xE2\x96", false}, {"<s>", true}}, false)
          .back() == 20);
}

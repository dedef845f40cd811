#include <string>

#include "tokenizer/test_tokenizers.h"

using namespace lockstep;

TEST_CASE("the tiny tokenizer merges by rank") {
  const auto tokenizer = parse_tokenizer(kTinyTokenizer);
  CHECK(tokenizer->encode("abc", {}) == Ids{4, 6});  // "a b" ranks before "\u2581 a"
  CHECK(tokenizer->encode("aab", {}) == Ids{7, 5});
  CHECK(tokenizer->decode(Ids{7, 5}).value() == "aab");
  CHECK(tokenizer->bos_id() == std::nullopt);
  CHECK(tokenizer->encode("a", {.add_bos = true}) == Ids{7});
}

TEST_CASE("characters outside the vocabulary are unknown, fused or not, or bytes") {
  CHECK(parse_tokenizer(kTinyTokenizer)->encode("xyaz", {}) == Ids{4, 0, 1, 0});
  const auto single = parse_tokenizer(tiny_with({"model", "fuse_unk"}, "false"));
  CHECK(single->encode("xya", {}) == Ids{4, 0, 0, 1});
  const auto dropped = parse_tokenizer(tiny_with({"model", "unk_token"}, "null"));
  CHECK(dropped->encode("xya", {}) == Ids{7});
}

TEST_CASE("with ignore_merges a piece that is a token is taken whole") {
  const std::string text = tiny_with({"model", "ignore_merges"}, "true");
  CHECK(parse_tokenizer(text)->encode("a", {}) == Ids{7});
  CHECK(parse_tokenizer(text)->encode("ab", {}) == Ids{4, 5});
}

TEST_CASE("Metaspace prepends always, only first or never, and splits before its mark") {
  const auto with = [](const std::string& rest) {
    auto document = parse_json(
        tiny_with({"pre_tokenizer"}, R"({"type":"Metaspace","replacement":"▁")" + rest + "}"));
    document.value().get_object()["normalizer"] = nullptr;
    document.value().get_object()["added_tokens"].get_array().push_back(
        parse_json(R"({"id":8,"content":"<x>","special":false,"normalized":false})").value());
    return parse_tokenizer(dump_json(document.value()));
  };
  CHECK(with(R"(,"prepend_scheme":"always","split":false)")->encode("a<x>a", {}) == Ids{7, 8, 7});
  CHECK(with(R"(,"prepend_scheme":"first","split":false)")->encode("a<x>a", {}) == Ids{7, 8, 1});
  CHECK(with(R"(,"prepend_scheme":"first")")->encode("<x>a a", {}) == Ids{8, 1, 7});
  CHECK(with(R"(,"prepend_scheme":"never")")->encode("a a", {}) == Ids{1, 7});
  CHECK(with(R"(,"prepend_scheme":"always")")->encode(" a", {}) == Ids{7});  // not twice
  CHECK(with(R"(,"add_prefix_space":false)")->encode("a", {}) == Ids{1});
  CHECK(with("")->encode("a", {}) == Ids{7});
}

TEST_CASE("the longest added token is matched, plain ones always") {
  const auto tokenizer = parse_tokenizer(tiny_with({"added_tokens"}, R"([
      {"id": 8, "content": "<x", "special": false, "normalized": false},
      {"id": 9, "content": "<x>", "special": false, "normalized": false},
      {"id": 10, "content": "<x>!", "special": true, "normalized": false}])"));
  CHECK(tokenizer->vocab_size() == 11);
  CHECK(tokenizer->encode("<x<x><x>!", {}) == Ids{8, 9, 9, 4, 0});
  CHECK(tokenizer->encode("<x<x><x>!", {.parse_special = true}) == Ids{8, 9, 10});
  CHECK(tokenizer->decode(Ids{7, 10, 1}).value() == "a<x>!a");
}

TEST_CASE("added tokens strip white space as configured") {
  const auto tokenizer = parse_tokenizer(tiny_with({"added_tokens"}, R"([
      {"id": 8, "content": "<l>", "special": false, "normalized": false, "lstrip": true},
      {"id": 9, "content": "<r>", "special": false, "normalized": false, "rstrip": true}])"));
  CHECK(tokenizer->encode("a \u00A0\n<l>a", {}) == Ids{7, 8, 7});
  CHECK(tokenizer->encode("a<r> \u3000 <l>a", {}) == Ids{7, 9, 8, 7});
  CHECK(tokenizer->encode(" <l>", {}) == Ids{8});
}

TEST_CASE("a normalized added token is matched after the normalizer") {
  const auto tokenizer = parse_tokenizer(tiny_with({"added_tokens"}, R"([
      {"id": 8, "content": "c c", "special": false, "normalized": true}])"));
  CHECK(tokenizer->encode("c ca", {}) == Ids{8, 1});
  CHECK(tokenizer->encode("ac c", {}) == Ids{7, 3, 4, 3});  // there it is not "\u2581c\u2581c"
}

TEST_CASE("the token at the beginning of a text comes from the template") {
  const auto bos_of = [](const std::string& post_processor) {
    return parse_tokenizer(tiny_with({"post_processor"}, post_processor))->bos_id();
  };
  const std::string bos = R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>",
      "type_id":0}},{"Sequence":{"id":"A"}}],"special_tokens":{"<s>":{"id":"<s>","ids":[3]}}})";
  CHECK(bos_of(bos) == 3);
  CHECK(bos_of(R"({"type":"Sequence","processors":[{"type":"ByteLevel"},)" + bos + "]}") == 3);
  CHECK(bos_of(R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}}]})") ==
        std::nullopt);
}

TEST_CASE("the token after a text comes from the template and is not part of the encoded text") {
  // As in Qwen3-Embedding.
  const std::string end = R"({"type":"TemplateProcessing","single":[{"Sequence":{"id":"A"}},
      {"SpecialToken":{"id":"<s>","type_id":0}}],
      "special_tokens":{"<s>":{"id":"<s>","ids":[3]}}})";
  const auto tokenizer = parse_tokenizer(
      tiny_with({"post_processor"},
                R"({"type":"Sequence","processors":[{"type":"ByteLevel"},)" + end + "]}"));
  CHECK(tokenizer->end_id() == 3);
  CHECK(tokenizer->bos_id() == std::nullopt);
  const auto ids = tokenizer->encode("a", {});
  CHECK(std::find(ids.begin(), ids.end(), 3) == ids.end());
  CHECK(parse_tokenizer(tiny_with({"post_processor"}, "null"))->end_id() == std::nullopt);
}

TEST_CASE("unknown features are unsupported and named") {
  struct Case {
    std::vector<std::string> keys;
    const char* value;
    const char* sentence;
  };
  const Case cases[] = {
      {{"model", "type"}, R"("WordLevel")", "model WordLevel"},
      {{"model", "dropout"}, "0.1", "model dropout"},
      {{"model", "continuing_subword_prefix"}, R"("##")", "model continuing_subword_prefix"},
      {{"normalizer"}, R"({"type":"Nmt"})", "normalizer Nmt"},
      {{"normalizer"},
       R"({"type":"Replace","pattern":{"Regex":"("},"content":""})",
       "regex ( cannot be read"},
      {{"normalizer"},
       R"({"type":"Replace","pattern":{"String":"a"},"content":
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})",
       "normalizer growth of the text"},
      {{"pre_tokenizer"}, R"({"type":"UnicodeScripts"})", "pre_tokenizer UnicodeScripts"},
      {{"pre_tokenizer"}, R"({"type":"ByteLevel"})", "decoder of a byte-level text"},
      {{"pre_tokenizer"},
       R"({"type":"Split","pattern":{"Regex":"[a-z&&[^b]]"},"behavior":"Isolated"})",
       "class intersection [a-z&&[^b]]"},
      {{"pre_tokenizer"},
       R"({"type":"Metaspace","replacement":"_","prepend_scheme":"last"})",
       "prepend_scheme last"},
      {{"pre_tokenizer"},
       R"({"type":"Sequence","pretokenizers":[
           {"type":"ByteLevel","add_prefix_space":false,"use_regex":false},
           {"type":"Metaspace","replacement":"▁","prepend_scheme":"always"}]})",
       "Metaspace after ByteLevel"},
      {{"pre_tokenizer"},
       R"({"type":"Sequence","pretokenizers":[{"type":"Metaspace","replacement":"_"},
           {"type":"Metaspace","replacement":"▁"}]})",
       "second Metaspace"},
      {{"post_processor"}, R"({"type":"RobertaProcessing"})", "post_processor RobertaProcessing"},
      {{"decoder"}, "null", "decoder null"},
      {{"decoder"}, R"({"type":"CTC"})", "decoder CTC"},
      {{"decoder"}, R"({"type":"ByteLevel"})", "decoder ByteLevel"},
      {{"decoder"}, R"({"type":"Strip","content":" ","start":1,"stop":0})", "decoder Strip"},
  };
  for (const auto& [keys, value, sentence] : cases) {
    CAPTURE(value);
    const auto tokenizer = Tokenizer::parse(tiny_with(keys, value));
    REQUIRE_FALSE(tokenizer.ok());
    CHECK(tokenizer.error().code == ErrorCode::kUnsupported);
    CAPTURE(tokenizer.error().message);
    CHECK(tokenizer.error().message.find(sentence) != std::string::npos);
  }
}

TEST_CASE("a tokenizer that contradicts itself is corrupt") {
  struct Case {
    std::vector<std::string> keys;
    const char* value;
    const char* sentence;
  };
  const Case cases[] = {
      {{"model"}, "null", "model has no type"},
      {{"model", "vocab"}, "[]", "model has no vocab"},
      {{"model", "vocab", "a"}, "2", "has the id 2 twice"},
      {{"model", "vocab", "a"}, "-1", "has the id -1, which is outside"},
      {{"model", "vocab", "a"}, "9000000000", "which is outside 0 to"},
      {{"model", "vocab", "a"}, "1.5", "id that is not an integer"},
      {{"model", "merges"}, "7", "model has no merges"},
      {{"model", "merges"}, R"(["ab"])", "has a merge that is not a pair: \"ab\""},
      {{"model", "merges"}, R"(["a b c"])", "has a merge that is not a pair"},
      {{"model", "merges"}, R"([["a"]])", "has a merge that is not a pair"},
      {{"model", "merges"}, R"(["c c"])", "merges tokens that are not in the vocabulary: \"c c\""},
      {{"model", "unk_token"}, R"("?")", "unk_token that is not in the vocabulary"},
      {{"model", "byte_fallback"}, "1", "\"byte_fallback\" must be true or false"},
      {{"normalizer"}, R"({"type":"Sequence"})", "normalizer Sequence has no parts"},
      {{"normalizer"}, R"({"type":"Prepend"})", "normalizer has no string \"prepend\""},
      {{"pre_tokenizer"},
       R"({"type":"Metaspace","replacement":"ab"})",
       "pre_tokenizer does not replace by one character"},
      {{"decoder"}, R"({"type":"Replace","pattern":{"String":""},"content":""})", "empty pattern"},
      {{"added_tokens"}, R"([{"id":1,"content":"new"}])", "has the id 1 twice"},
      {{"added_tokens"}, R"([{"content":"new"}])", "added token new has no id"},
      {{"post_processor"},
       R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}]})",
       "post_processor has no id for <s>"},
      {{"post_processor"},
       R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}],
           "special_tokens":{"<s>":{"ids":[99]}}})",
       "a token that does not exist"},
  };
  for (const auto& [keys, value, sentence] : cases) {
    CAPTURE(value);
    const auto tokenizer = Tokenizer::parse(tiny_with(keys, value));
    REQUIRE_FALSE(tokenizer.ok());
    CHECK(tokenizer.error().code == ErrorCode::kCorrupt);
    CAPTURE(tokenizer.error().message);
    CHECK(tokenizer.error().message.find(sentence) != std::string::npos);
  }
  CHECK(Tokenizer::parse("").error().code == ErrorCode::kCorrupt);
  CHECK(Tokenizer::parse("[]").error().code == ErrorCode::kCorrupt);
}

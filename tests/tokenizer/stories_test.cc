#include <string>

#include "base/threads/work.h"
#include "tokenizer/test_tokenizers.h"

using namespace lockstep;

namespace {

std::string text_of(const Json& value, std::string_view key) {
  return get_string(value, key).value().value();
}

}  // namespace

TEST_CASE("stories260K gives SentencePiece's ids, and decodes them back") {
  const auto tokenizer = stories_tokenizer();
  CHECK(tokenizer->vocab_size() == 512);
  CHECK(tokenizer->bos_id() == 1);
  const Json cases = read_json(LOCKSTEP_SOURCE_DIR "/tests/data/stories260K/expected_tokens.json");
  REQUIRE(cases.get_array().size() == 8);
  for (const Json& expected : cases.get_array()) {
    const std::string text = text_of(expected, "text");
    CAPTURE(text);
    const Ids ids = ids_of(*find(expected, "ids"));
    CHECK(tokenizer->encode(text, {}) == ids);
    CHECK(tokenizer->encode(text, {.add_bos = true}) == ids_of(*find(expected, "ids_with_bos")));
    CHECK(tokenizer->decode(ids).value() == text_of(expected, "decoded"));
  }
}

TEST_CASE("the greedy stories decode to their texts, whole and as a stream") {
  const auto tokenizer = stories_tokenizer();
  const Json stories =
      read_json(LOCKSTEP_SOURCE_DIR "/tests/data/stories260K/expected_greedy.json");
  REQUIRE(stories.get_array().size() == 5);
  for (const Json& story : stories.get_array()) {
    const std::string prompt = text_of(story, "prompt");
    CAPTURE(prompt);
    CHECK(tokenizer->encode(prompt, {.add_bos = true}) == ids_of(*find(story, "prompt_ids")));
    StreamDecoder stream(tokenizer, prompt.empty());
    std::string text;
    for (const int32_t id : ids_of(*find(story, "greedy_ids"))) text += stream.push(id);
    CHECK(text + stream.finish() == text_of(story, "completion"));
  }
}

TEST_CASE("special tokens in a text are plain text unless requested") {
  const auto tokenizer = stories_tokenizer();
  const Ids plain = tokenizer->encode("<s>", {});
  CHECK(plain.size() > 1);
  CHECK(tokenizer->decode(plain).value() == "<s>");
  CHECK(tokenizer->encode("<s>", {.parse_special = true}) == Ids{1});
  CHECK(tokenizer->encode("</s><s>", {.add_bos = true, .parse_special = true}) == Ids{1, 2, 1});
}

TEST_CASE("each text between special tokens gets its own dummy space") {
  const auto tokenizer = stories_tokenizer();
  Ids expected = tokenizer->encode("Once", {});
  expected.push_back(2);
  const Ids second = tokenizer->encode("upon", {});
  expected.insert(expected.end(), second.begin(), second.end());
  CHECK(tokenizer->encode("Once</s>upon", {.parse_special = true}) == expected);
  CHECK(tokenizer->decode(expected).value() == "Once</s> upon");
}

TEST_CASE("decoding prints special tokens, and a stream does not") {
  const auto tokenizer = stories_tokenizer();
  Ids ids = tokenizer->encode("Once", {.add_bos = true});
  CHECK(tokenizer->decode(ids).value() == "<s> Once");
  StreamDecoder stream(tokenizer, true);
  std::string text;
  for (const int32_t id : ids) text += stream.push(id);
  CHECK(text == "Once");
  CHECK(tokenizer->is_special(1));
  CHECK_FALSE(tokenizer->is_special(300));
  CHECK(tokenizer->token_bytes(1).empty());
}

TEST_CASE("empty text, invalid text and unknown ids") {
  const auto tokenizer = stories_tokenizer();
  CHECK(tokenizer->encode("", {}).empty());
  CHECK(tokenizer->encode("", {.add_bos = true}) == Ids{1});
  CHECK(tokenizer->encode("a\xFF\xE2\x82z", {}) == tokenizer->encode("a\uFFFD\uFFFDz", {}));
  CHECK(tokenizer->decode({}).value().empty());
  for (const int32_t id : {-1, 512, INT32_MAX, INT32_MIN}) {
    const auto text = tokenizer->decode(Ids{id});
    REQUIRE_FALSE(text.ok());
    CHECK(text.error().code == ErrorCode::kInvalidArgument);
    CHECK(text.error().message == "the vocabulary has no token " + std::to_string(id));
    CHECK(tokenizer->token_bytes(id).empty());
  }
}

TEST_CASE("a model folder without a tokenizer, and an invalid file") {
  const auto missing = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/src");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK(missing.error().message == LOCKSTEP_SOURCE_DIR
        "/src has no tokenizer.json, tekken.json, tokenizer.model, tiktoken.model or .gguf file");
  CHECK(Tokenizer::load("/nonexistent").error().code == ErrorCode::kNotFound);
  const auto other = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/models/stories260K/config.json");
  REQUIRE_FALSE(other.ok());
  CHECK(other.error().message == LOCKSTEP_SOURCE_DIR
        "/models/stories260K/config.json: the tokenizer's file has no model");
  CHECK(Tokenizer::load(LOCKSTEP_SOURCE_DIR "/models/stories260K/tokenizer.json").ok());
}

TEST_CASE("encoding ends early once the thread's work is cancelled") {
  const auto tokenizer = stories_tokenizer();
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += "Once upon a time. ";
  const size_t whole = tokenizer->encode(text, {}).size();
  Work work(std::chrono::hours(1));
  const Work::Scope scope(work);
  CHECK(tokenizer->encode(text, {}).size() == whole);
  work.cancel();
  CHECK(tokenizer->encode(text, {}).empty());
}

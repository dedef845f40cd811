#include <random>
#include <string>

#include "base/utf8.h"
#include "tokenizer/test_tokenizers.h"

using namespace lockstep;

namespace {

constexpr int32_t kFirstByteToken = 3;  // <0x00> of stories260K

int32_t byte_token(uint8_t byte) {
  return kFirstByteToken + byte;
}

}  // namespace

TEST_CASE("the bytes of a character are held back until it is complete") {
  StreamDecoder stream(stories_tokenizer(), false);
  CHECK(stream.push(byte_token(0xF0)).empty());
  CHECK(stream.push(byte_token(0x9F)).empty());
  CHECK(stream.push(byte_token(0x98)).empty());
  CHECK(stream.push(byte_token(0x80)) == "\U0001F600");
  CHECK(stream.finish().empty());
}

TEST_CASE("an incomplete character is U+FFFD, in the middle and at the end") {
  StreamDecoder stream(stories_tokenizer(), false);
  CHECK(stream.push(byte_token(0xE2)).empty());
  CHECK(stream.push(byte_token('x')) == "\uFFFDx");
  CHECK(stream.push(byte_token(0x80)) == "\uFFFD");
  CHECK(stream.push(byte_token(0xE2)).empty());
  CHECK(stream.push(byte_token(0x82)).empty());
  CHECK(stream.finish() == "\uFFFD");
}

TEST_CASE("special tokens are printed on request, and flush incomplete characters") {
  StreamDecoder stream(stories_tokenizer(), true, {{1, "<s>"}});
  CHECK(stream.push(1) == "<s>");
  CHECK(stream.push(2).empty());  // another one
  CHECK(stream.push(byte_token(0xE2)).empty());
  CHECK(stream.push(1) == "\uFFFD<s>");
  CHECK(stream.push(byte_token('x')) == "x");
}

TEST_CASE("only the first space of a text is a dummy space") {
  StreamDecoder stream(stories_tokenizer(), true);
  CHECK(stream.push(1).empty());
  CHECK(stream.push(byte_token(' ')).empty());
  CHECK(stream.push(byte_token(' ')) == " ");
}

TEST_CASE("a tokenizer without a dummy space loses none") {
  const auto tokenizer = parse_tokenizer(tiny_with({"decoder"}, R"({"type": "Sequence", "decoders":
      [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"}]})"));
  StreamDecoder stream(tokenizer, true);
  CHECK(stream.push(7) == " a");
  CHECK(tokenizer->decode(Ids{7}).value() == " a");
}

TEST_CASE("random ids stream to their decoded text, in valid UTF-8 throughout") {
  const auto tokenizer = stories_tokenizer();
  std::mt19937 random(3);
  const uint8_t bytes[] = {' ', 'a', 0x80, 0x9F, 0xA0, 0xBF, 0xC3, 0xE2, 0xE0, 0xED, 0xF0, 0xF4};
  int wrong = 0;
  for (int round = 0; round < 20'000; ++round) {
    StreamDecoder stream(tokenizer, true);
    Ids ids;
    std::string streamed;
    for (size_t count = random() % 12; count > 0; --count) {
      const bool is_byte = random() % 4 != 0;
      const int32_t id = is_byte ? byte_token(bytes[random() % std::size(bytes)])
                                 : static_cast<int32_t>(random() % 512);
      if (!tokenizer->is_special(id)) ids.push_back(id);
      const std::string piece = stream.push(id);
      if (!is_valid_utf8(piece)) ++wrong;
      streamed += piece;
    }
    streamed += stream.finish();
    if (streamed != tokenizer->decode(ids).value()) ++wrong;
  }
  CHECK(wrong == 0);
}

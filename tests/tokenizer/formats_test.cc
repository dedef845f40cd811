// Small files of each format, written here.
#include "tokenizer/formats.h"

#include <bit>
#include <string>

#include "support/gguf_writer.h"
#include "support/text.h"
#include "tokenizer/files/protobuf.h"
#include "tokenizer/pipeline/pre_tokenizer.h"
#include "tokenizer/pipeline/pre_tokenizer_names.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/text/base64.h"
#include "tokenizer/text/charsmap.h"

using namespace lockstep;

namespace {

using Shared = std::shared_ptr<const Tokenizer>;

Shared must(TokenizerResult result) {
  if (!result.ok()) FAIL(result.error().message);
  return result.value();
}

std::string error_of(const TokenizerResult& result) {
  return result.ok() ? "no error" : result.error().message;
}

// "a", "b", " ", "ab", " ab", "1" with the ranks 0 to 5.
constexpr const char* kRanks = "YQ== 0\nYg== 1\nIA== 2\nYWI= 3\nIGFi 4\nMQ== 5\n";

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string field(uint32_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string field(uint32_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string piece(std::string_view text, float score, uint64_t type) {
  return field(1, field(1, text) + varint(2 << 3 | 5) + GgufWriter::raw(score) + field(3, type));
}

// A tokenizer.model with "ab" and "\u2581ab", a user-defined "<x>", and a byte piece only for "\n".
std::string sentence_piece(uint64_t model_type) {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("▁", -1, 1) + piece("a", -2, 1) +
         piece("b", -3, 1) + piece("ab", -2.5f, 1) + piece("▁ab", -4, 1) + piece("<x>", 0, 4) +
         piece("<0x0A>", 0, 6) + field(2, field(3, model_type) + field(41, 1)) +
         field(3, field(4, uint64_t{0}));
}

GgufWriter gguf(const std::string& model, const Strings& tokens,
                const std::vector<int32_t>& types) {
  std::string type_bytes;
  for (const int32_t type : types) type_bytes += GgufWriter::raw(type);
  GgufWriter writer;
  writer.string("tokenizer.ggml.model", model).strings("tokenizer.ggml.tokens", tokens);
  writer.array("tokenizer.ggml.token_type", GgufWriter::kInt32, types.size(), type_bytes);
  return writer;
}

TokenizerResult read_gguf(const GgufWriter& writer, std::string_view pre = "") {
  const std::string file = writer.file();
  const auto parsed = GgufFile::parse(std::as_bytes(std::span(file)));
  REQUIRE(parsed.ok());
  return read_gguf_tokenizer(parsed.value(), pre);
}

}  // namespace

TEST_CASE("tiktoken's ranks merge, with Llama 3's special tokens after them") {
  const Shared tokenizer = must(read_tiktoken(kRanks, nullptr, ""));
  CHECK(tokenizer->encode("ab ab1", {}) == Ids{3, 4, 5});
  CHECK(tokenizer->vocab_size() == 6 + 256);
  CHECK(tokenizer->bos_id() == 6);
  CHECK(tokenizer->decode(Ids{6, 3, 6 + 9}).value() == "<|begin_of_text|>ab<|eot_id|>");
  CHECK(tokenizer->encode("<|eot_id|>a", {.parse_special = true}) == Ids{15, 0});
  CHECK(tokenizer->is_special(6 + 255));
  // Without special tokens, bytes that have no rank are dropped, and no special id appears.
  CHECK(tokenizer->encode("<|eot_id|>a", {}) == Ids{0});
}

TEST_CASE("Kimi's special tokens come from tokenizer_config.json") {
  const auto config = parse_json(
      R"({"added_tokens_decoder":{"6":{"content":"[BOS]"},"8":{"content":"<|im_end|>"},
          "9":{"content":"plain","special":false},"3":{"content":"ab"}}})");
  REQUIRE(config.ok());
  const Shared tokenizer = must(read_tiktoken(kRanks, &config.value(), "kimi-k2"));
  CHECK(tokenizer->bos_id() == std::nullopt);
  CHECK(tokenizer->decode(Ids{6, 7, 8}).value() == "[BOS]<|reserved_token_7|><|im_end|>");
  CHECK(tokenizer->encode("plain", {}) == Ids{9});
}

TEST_CASE("invalid ranks are corrupt") {
  CHECK(contains(error_of(read_tiktoken("YQ== 0\nYg==\n", nullptr, "")), "line 2"));
  CHECK(contains(error_of(read_tiktoken("Y?== 0\n", nullptr, "")), "line 1"));
  CHECK(contains(error_of(read_tiktoken("YQ== 0\nYg== 0\n", nullptr, "")), "the id 0 twice"));
  CHECK(contains(error_of(read_tiktoken("\n", nullptr, "")), "is empty"));
  CHECK(contains(error_of(read_tiktoken(kRanks, nullptr, "x")),
                 "the pre-tokenizer x is unknown; known are "));
}

TEST_CASE("tekken's ranks begin after its special tokens") {
  const std::string vocab = R"("vocab":[{"rank":0,"token_bytes":"YQ=="},
      {"rank":1,"token_bytes":"Yg=="},{"rank":2,"token_bytes":"YWI="},
      {"rank":3,"token_bytes":"eA=="}])";
  const std::string config = R"({"config":{"pattern":"\\p{L}+|\\s+","default_vocab_size":6,
      "default_num_special_tokens":3},)";
  const auto read = [&](const std::string& text) {
    const auto document = parse_json(text);
    REQUIRE(document.ok());
    return read_tekken(document.value());
  };
  const Shared tokenizer = must(read(config + vocab + "}"));
  CHECK(tokenizer->encode("aba", {}) == Ids{5, 3});
  CHECK(tokenizer->encode("x", {}) == Ids{});  // the file has more than the model uses
  CHECK(tokenizer->bos_id() == 1);
  CHECK(tokenizer->decode(Ids{1, 5, 2}).value() == "<s>ab</s>");
  const Shared named = must(read(
      config + vocab + R"(,"special_tokens":[{"rank":2,"token_str":"[END]","is_control":true}]})"));
  CHECK(named->decode(Ids{0, 2}).value() == "<SPECIAL_0>[END]");
  CHECK(named->bos_id() == std::nullopt);
  CHECK(contains(error_of(read(R"({"config":{},"vocab":[]})")), "no count \"default_vocab_size\""));
  CHECK(contains(error_of(read(config + vocab + R"(,"special_tokens":[{"rank":7}]})")), "7 of 3"));
}

TEST_CASE("SentencePiece's BPE takes the best piece first, its unigram the best sum") {
  const Shared bpe = must(read_sentence_piece(sentence_piece(2)));
  CHECK(bpe->encode("ab", {}) == Ids{6});
  CHECK(bpe->encode("ab\nb", {}) == Ids{6, 8, 4});
  CHECK(bpe->encode("aé", {}) == Ids{2, 3, 0});
  CHECK(bpe->encode("  a", {}) == Ids{2, 2, 2, 3});
  CHECK(bpe->decode(Ids{6, 8, 7, 1}).value() == "ab\n<x><s>");
  CHECK(bpe->bos_id() == 1);
  const Shared unigram = must(read_sentence_piece(sentence_piece(1)));
  CHECK(unigram->encode("ab", {}) == Ids{2, 5});  // -1 - 2.5 is greater than -4
  CHECK(unigram->encode("aéé", {}) == Ids{2, 3, 0});
  CHECK(unigram->encode("", {}) == Ids{});
}

TEST_CASE("user-defined pieces are found in text, control pieces only on request") {
  const Shared tokenizer = must(read_sentence_piece(sentence_piece(2)));
  CHECK(tokenizer->encode("ab<x>ab", {}) == Ids{6, 7, 5});  // no prefix after it
  CHECK(tokenizer->encode("<s>", {}) == Ids{2, 0});
  CHECK(tokenizer->encode("<s>ab", {.parse_special = true}) == Ids{1, 6});
}

TEST_CASE("a SentencePiece model that is broken or of another kind is an error") {
  const std::string good = sentence_piece(2);
  for (size_t size = 0; size < good.size(); ++size) {
    (void)read_sentence_piece(std::string_view(good).substr(0, size)).ok();
  }
  CHECK(contains(error_of(read_sentence_piece(good.substr(0, 5))), "ends inside a field"));
  CHECK(contains(error_of(read_sentence_piece("")), "has no pieces"));
  CHECK(contains(error_of(read_sentence_piece(sentence_piece(3))), "type 3"));
  CHECK(contains(error_of(read_sentence_piece(piece("a", 0, 9))), "a piece of the type 9"));
  CHECK(contains(error_of(read_sentence_piece("\x0B")), "unknown kind"));
  CHECK(contains(error_of(read_sentence_piece(good + field(2, field(40, 99)))), "token 99 of 9"));
}

TEST_CASE("GGUF's byte-level vocabulary uses the named pre-tokenizer, or another") {
  GgufWriter writer = gguf("gpt2", {"a", "1", "11", "Ġ", "Ġa", "ü", "<s>"}, {1, 1, 1, 1, 1, 4, 3});
  writer.strings("tokenizer.ggml.merges", {"1 1", "Ġ a", "a a"});
  writer.value("tokenizer.ggml.bos_token_id", GgufWriter::kUint32, GgufWriter::raw<uint32_t>(6));
  writer.string("tokenizer.ggml.pre", "gpt-2");
  const Shared tokenizer = must(read_gguf(writer));
  CHECK(tokenizer->encode("a a11", {}) == Ids{0, 4, 2});
  CHECK(tokenizer->bos_id() == std::nullopt);
  CHECK(must(read_gguf(writer, "qwen2"))->encode("a a11", {}) == Ids{0, 4, 1, 1});
  CHECK(must(read_gguf(writer, "llama-bpe"))->bos_id() == 6);
  // A user-defined token is its text, not the byte that its letter stands for.
  CHECK(tokenizer->encode("ü", {}) == Ids{5});
  CHECK(tokenizer->decode(Ids{5, 4}).value() == "ü a");
  CHECK(tokenizer->encode("<s>", {}) == Ids{});
  CHECK(contains(error_of(read_gguf(writer, "other")), "known are llama-bpe"));
}

// Gemma's tokenizer.json: spaces are marked, and nothing is split before the merges.
TEST_CASE("GGUF's vocabulary with marked spaces gives the tokens of its tokenizer.json") {
  std::vector<std::string> tokens = {"<pad>", "<eos>", "<bos>", "<unk>"};
  std::vector<int32_t> types = {3, 3, 3, 2};
  for (int byte = 0; byte < 256; ++byte) {
    tokens.push_back(fmt::format("<0x{:02X}>", byte));
    types.push_back(6);
  }
  for (const char* text : {"▁", "a", "b", "c", "\n", "▁a", "ab", "▁ab", "\n\n", "▁▁", "<|\"|>"}) {
    tokens.emplace_back(text);
    types.push_back(tokens.back() == "<|\"|>" ? 4 : 1);
  }
  const std::vector<std::string> merges = {"\n \n", "a b", "▁ ▁", "▁ ab", "▁ a"};
  GgufWriter writer = gguf("gemma4", tokens, types);
  writer.strings("tokenizer.ggml.merges", merges);
  writer.value("tokenizer.ggml.bos_token_id", GgufWriter::kUint32, GgufWriter::raw<uint32_t>(2));
  writer.value("tokenizer.ggml.unknown_token_id", GgufWriter::kUint32,
               GgufWriter::raw<uint32_t>(3));
  const Shared tokenizer = must(read_gguf(writer));

  JsonObject vocabulary;
  for (size_t id = 0; id < tokens.size(); ++id) vocabulary[tokens[id]] = static_cast<int64_t>(id);
  JsonArray pairs, added;
  for (const std::string& merge : merges) pairs.emplace_back(merge);
  for (const int id : {0, 1, 2, 3, static_cast<int>(tokens.size()) - 1}) {
    added.push_back(
        JsonObject{{"id", id}, {"content", tokens[static_cast<size_t>(id)]}, {"special", true}});
  }
  const Json json = JsonObject{
      {"normalizer",
       JsonObject{{"type", "Replace"}, {"pattern", JsonObject{{"String", " "}}}, {"content", "▁"}}},
      {"pre_tokenizer", JsonObject{{"type", "Split"},
                                   {"pattern", JsonObject{{"String", " "}}},
                                   {"behavior", "MergedWithPrevious"},
                                   {"invert", false}}},
      {"decoder",
       JsonObject{{"type", "Sequence"},
                  {"decoders",
                   JsonArray{JsonObject{{"type", "Replace"},
                                        {"pattern", JsonObject{{"String", "▁"}}},
                                        {"content", " "}},
                             JsonObject{{"type", "ByteFallback"}}, JsonObject{{"type", "Fuse"}}}}}},
      {"added_tokens", added},
      {"model", JsonObject{{"type", "BPE"},
                           {"byte_fallback", true},
                           {"fuse_unk", true},
                           {"unk_token", "<unk>"},
                           {"vocab", vocabulary},
                           {"merges", pairs}}}};
  const Shared reference = must(read_json_tokenizer(json));
  for (const char* text : {"ab ab", "  a\n\n\nb", "ü <|\"|> c", "<0x0A>", "a▁b", "<eos>", ""}) {
    CAPTURE(std::string(text));
    CHECK(tokenizer->encode(text, {}) == reference->encode(text, {}));
    CHECK(tokenizer->decode(tokenizer->encode(text, {})).value() ==
          reference->decode(reference->encode(text, {})).value());
  }
  CHECK(tokenizer->encode("ab ab", {}) == Ids{266, 267});
  // Declared as ordinary, but a mark of the model's own.
  const auto mark = static_cast<int32_t>(tokens.size()) - 1;
  CHECK(tokenizer->is_special(mark));
  CHECK(tokenizer->encode("<|\"|>", {.parse_special = true}) == Ids{mark});
  CHECK(tokenizer->encode("<|\"|>", {}) != Ids{mark});
  writer.boolean("tokenizer.ggml.add_bos_token", false);
  CHECK(must(read_gguf(writer))->bos_id() == 2);
}

TEST_CASE("GGUF's WordPiece and unigram vocabularies are read, others are named") {
  GgufWriter words = gguf("bert", {"[UNK]", "[CLS]", "▁ab", "c", "▁."}, {2, 3, 1, 1, 1});
  words.value("tokenizer.ggml.unknown_token_id", GgufWriter::kUint32, GgufWriter::raw<uint32_t>(0));
  const Shared tokenizer = must(read_gguf(words));
  CHECK(tokenizer->encode("ÁBc. x", {}) == Ids{2, 3, 4, 0});
  CHECK(tokenizer->decode(Ids{2, 3, 4}).value() == "abc .");
  GgufWriter unigram = gguf("t5", {"<unk>", "▁", "a", "▁a"}, {2, 1, 1, 1});
  unigram.value("tokenizer.ggml.unknown_token_id", GgufWriter::kUint32,
                GgufWriter::raw<uint32_t>(0));
  std::string scores;
  for (const float score : {0.f, -1.f, -1.f, -3.f}) scores += GgufWriter::raw(score);
  unigram.array("tokenizer.ggml.scores", GgufWriter::kFloat32, 4, scores);
  CHECK(must(read_gguf(unigram))->encode("a", {}) == Ids{1, 2});
  CHECK(contains(error_of(read_gguf(unigram, "qwen2")), "--pre could replace"));
  CHECK(contains(error_of(read_gguf(gguf("rwkv", {"a"}, {1}))), "model rwkv is not supported"));
  CHECK(contains(error_of(read_gguf(gguf("gpt2", {"a"}, {1}))), "has no merges"));
  CHECK(contains(error_of(read_gguf(gguf("llama", {"a", "b"}, {1}))), "2 tokens but 1 types"));
  CHECK(contains(error_of(read_gguf(gguf("llama", {"a"}, {1}))), "1 tokens but 0 scores"));
}

TEST_CASE("every named pre-tokenizer compiles and covers every byte") {
  const std::string text = "It's 12345.6 Ünïcode\r\n  中文ab かな 한국 \t x=1; 'LL ½²٣ 😀  ";
  for (const char* name : {"default",     "llama-bpe",     "deepseek-llm", "deepseek-coder",
                           "deepseek-v3", "falcon",        "mpt",          "starcoder",
                           "gpt-2",       "refact",        "command-r",    "qwen2",
                           "stablelm2",   "olmo",          "dbrx",         "smaug-bpe",
                           "poro-chat",   "chatglm-bpe",   "glm4",         "viking",
                           "jais",        "tekken",        "smollm",       "codeshell",
                           "bloom",       "gpt3-finnish",  "exaone",       "chameleon",
                           "minerva-7b",  "megrez",        "gpt-4o",       "superbpe",
                           "trillion",    "bailingmoe",    "llama4",       "seed-coder",
                           "hunyuan",     "hunyuan-dense", "kimi-k2",      "grok-2",
                           "afmoe",       "minimax-m2",    "qwen35",       "deepseek-r1-qwen"}) {
    CAPTURE(name);
    const auto named = named_pre_tokenizer(name);
    REQUIRE(named.ok());
    const auto pre_tokenizer = PreTokenizer::byte_level(named.value().patterns);
    REQUIRE_MESSAGE(pre_tokenizer.ok(), pre_tokenizer.error().message);
    const TextPieces cut = pre_tokenizer.value().cut(text, true);
    std::string joined;
    for (const TextPieces::Piece piece : cut.pieces) joined += cut.view(piece);
    CHECK(joined == text);
    CHECK(cut.pieces.size() > 5);
  }
}

TEST_CASE("base64 with and without padding, and invalid text") {
  CHECK(decode_base64("YWI=") == "ab");
  CHECK(decode_base64("YWI") == "ab");
  CHECK(decode_base64("") == "");
  CHECK(decode_base64("//79") == "\xFF\xFE\xFD");
  CHECK(decode_base64("Y") == std::nullopt);
  CHECK(encode_base64("") == "");
  CHECK(encode_base64("a") == "YQ==");
  CHECK(encode_base64("ab") == "YWI=");
  CHECK(encode_base64("\xFF\xFE\xFD") == "//79");
  CHECK(decode_base64("YW I") == std::nullopt);
}

TEST_CASE("a charsmap that is broken is corrupt") {
  CHECK_FALSE(Charsmap::parse("").ok());
  CHECK_FALSE(Charsmap::parse(GgufWriter::raw<uint32_t>(400) + "short").ok());
  CHECK_FALSE(Charsmap::parse(GgufWriter::raw<uint32_t>(4) + "unit").ok());
  const auto empty = Charsmap::parse(GgufWriter::raw<uint32_t>(4) + std::string(5, '\0'));
  REQUIRE(empty.ok());
  CHECK(empty.value().apply("aé") == "aé");
}

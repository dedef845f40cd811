// links: tokenizer
// Pipelines of a tokenizer.json: the input chooses normalizers, pre-tokenizers, a model, decoders,
// a post-processor and added tokens, each from a table, in any number and order; the rest of it is
// the text. A pipeline that loads must encode, decode and stream every text, in a bounded number of
// tokens.
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer_checks.h"

using namespace lockstep;

namespace {

constexpr size_t kPartsMax = 9;  // of one kind
constexpr size_t kTextBytesMax = 2048;
// A limit on the tokens per byte of a text: far above what any model needs, far below the result of
// a chain that doubles the text at each step.
constexpr size_t kTokensPerByteMax = 256;
constexpr size_t kTokensFree = 1 << 20;

constexpr std::string_view kNormalizers[] = {
    R"({"type":"NFC"})",
    R"({"type":"NFD"})",
    R"({"type":"NFKC"})",
    R"({"type":"NFKD"})",
    R"({"type":"Lowercase"})",
    R"({"type":"StripAccents"})",
    R"({"type":"Strip","strip_left":true,"strip_right":true})",
    R"({"type":"BertNormalizer"})",
    R"({"type":"Prepend","prepend":"▁"})",
    R"({"type":"Prepend","prepend":" é"})",
    R"({"type":"Replace","pattern":{"String":" "},"content":"▁"})",
    R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaa"})",
    R"({"type":"Replace","pattern":{"String":"b"},"content":""})",
    R"({"type":"Replace","pattern":{"String":"a"},"content":"\uFDFA"})",
    R"({"type":"Replace","pattern":{"Regex":" {2,}"},"content":" "})",
    R"({"type":"Replace","pattern":{"Regex":""},"content":"中"})",
    R"({"type":"Replace","pattern":{"Regex":"."},"content":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"})",
    R"x({"type":"Replace","pattern":{"Regex":"(?<=a)\\K(?=b)"},"content":"İ"})x",
    R"x({"type":"Replace","pattern":{"Regex":"a{1,250}a{1,250}a{1,250}c|a"},"content":"b"})x",
};

constexpr std::string_view kPreTokenizers[] = {
    R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})",
    R"({"type":"ByteLevel"})",
    R"({"type":"ByteLevel","add_prefix_space":true,"use_regex":false})",
    R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})",
    R"({"type":"Metaspace","replacement":"_","prepend_scheme":"always","split":true})",
    R"({"type":"Metaspace","replacement":"Ġ","prepend_scheme":"first","split":false})",
    R"({"type":"Metaspace","replacement":"é","prepend_scheme":"never","split":true})",
    R"({"type":"Digits","individual_digits":true})",
    R"({"type":"Digits"})",
    R"({"type":"Punctuation","behavior":"Removed"})",
    R"({"type":"Punctuation","behavior":"MergedWithPrevious"})",
    R"({"type":"Whitespace"})",
    R"({"type":"WhitespaceSplit"})",
    R"({"type":"BertPreTokenizer"})",
    R"({"type":"CharDelimiterSplit","delimiter":"a"})",
    R"({"type":"CharDelimiterSplit","delimiter":"Ġ"})",
    R"({"type":"Split","pattern":{"Regex":""},"behavior":"Isolated"})",
    R"({"type":"Split","pattern":{"Regex":"."},"behavior":"Isolated"})",
    R"({"type":"Split","pattern":{"Regex":"."},"behavior":"Removed"})",
    R"({"type":"Split","pattern":{"Regex":"a\\Kb?"},"behavior":"MergedWithNext"})",
    R"({"type":"Split","pattern":{"Regex":"(?=b)|a$"},"behavior":"Contiguous","invert":true})",
    R"({"type":"Split","pattern":{"String":"▁"},"behavior":"MergedWithNext","invert":true})",
    // Takes nearly all steps of a search at each letter.
    R"x({"type":"Split","pattern":{"Regex":"(?:a{1,250}a{1,250}a{1,250}c|a)"},
        "behavior":"Isolated"})x",
};

constexpr std::string_view kDecoders[] = {
    R"({"type":"ByteLevel"})",
    R"({"type":"ByteLevel","add_prefix_space":true})",
    R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always"})",
    R"({"type":"Metaspace","replacement":"a","prepend_scheme":"never"})",
    R"({"type":"WordPiece","prefix":"##"})",
    R"({"type":"WordPiece","prefix":"a"})",
    R"({"type":"Replace","pattern":{"String":"▁"},"content":" "})",
    R"({"type":"Replace","pattern":{"String":"a"},"content":"aaaaaaaa"})",
    R"({"type":"Replace","pattern":{"String":"<0x"},"content":"é"})",
    R"({"type":"ByteFallback"})",
    R"({"type":"Fuse"})",
    R"({"type":"Strip","content":" ","start":1,"stop":0})",
};

#define WORDS R"("<unk>":0,"a":1,"b":2,"ab":3,"▁":4,"▁a":5,"##b":6,"é":7,"Ġ":8,"Ã":9,"Ġa":10,)"
#define BYTES R"("<0x00>":11,"<0x0A>":12,"<0xC3>":13,"<0xE2>":14,"©":15,"â":16,"ĸ":17,"":18)"
constexpr std::string_view kModels[] = {
    R"({"type":"BPE","vocab":{)" WORDS BYTES R"(},"merges":["a b","▁ a","Ġ a"]})",
    R"({"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{)" WORDS
        BYTES R"(},"merges":["a b"]})",
    R"({"type":"BPE","unk_token":"<unk>","ignore_merges":true,"vocab":{)" WORDS BYTES
    R"(},"merges":[]})",
    R"({"type":"WordPiece","unk_token":"<unk>","continuing_subword_prefix":"##","vocab":{)" WORDS
        BYTES "}}",
    R"({"type":"WordPiece","unk_token":"a","continuing_subword_prefix":"",
        "max_input_chars_per_word":3,"vocab":{)" WORDS BYTES "}}",
    R"({"type":"Unigram","unk_id":0,"byte_fallback":true,"vocab":[["<unk>",0],["a",-1.5],["b",-2],
        ["ab",-1],["▁",-1],["▁a",-3],["é",-1e300],["",1],["<0xC3>",-9],["<0x0A>",-9]]})",
    R"({"type":"Unigram","unk_id":1,"vocab":[["a",1e308],["<unk>",-1e308],["aa",1e308]]})",
    R"({"type":"BPE","vocab":{"a":4194303,"b":5,"ab":7},"merges":["a b"]})",
};
#undef WORDS
#undef BYTES

constexpr std::string_view kPostProcessors[] = {
    "null",
    R"({"type":"ByteLevel"})",
    R"({"type":"TemplateProcessing","special_tokens":{"<s>":{"ids":[2]}},
        "single":[{"SpecialToken":{"id":"<s>"}},{"Sequence":{"id":"A"}}]})",
    R"({"type":"TemplateProcessing","special_tokens":{"<s>":{"ids":[40]}},
        "single":[{"Sequence":{"id":"A"}},{"SpecialToken":{"id":"<s>"}}]})",
    R"({"type":"Sequence","processors":[{"type":"ByteLevel"},
        {"type":"Sequence","processors":[]}]})",
};

constexpr std::string_view kAddedTokens[] = {
    R"({"id":40,"content":"<s>","special":true})",
    R"({"id":41,"content":" b","special":false,"lstrip":true,"rstrip":true})",
    R"({"id":42,"content":"é","special":false,"normalized":true,"single_word":true})",
    R"({"id":43,"content":"Ġ","special":false,"normalized":false})",
    R"({"id":44,"content":"","special":true})",
    R"({"id":1,"content":"a","special":true,"lstrip":true})",
    R"({"id":45,"content":"\u0000","special":true,"rstrip":true})",
};

// Consumes the input from its beginning; missing bytes are 0.
class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}

  size_t below(size_t count) {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte % count;
  }
  std::string_view one_of(std::span<const std::string_view> table) {
    return table[below(table.size())];
  }
  std::string some_of(std::span<const std::string_view> table) {
    std::string list;
    for (size_t left = below(kPartsMax + 1); left > 0; --left) {
      list += std::string(list.empty() ? "" : ",").append(one_of(table));
    }
    return list;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

std::string sequence(std::string_view key, const std::string& parts) {
  return R"({"type":"Sequence",")" + std::string(key) + "\":[" + parts + "]}";
}

std::string chosen_tokenizer(Choices& choices) {
  std::string json = R"({"normalizer":)" + sequence("normalizers", choices.some_of(kNormalizers));
  json += R"(,"pre_tokenizer":)" + sequence("pretokenizers", choices.some_of(kPreTokenizers));
  json += R"(,"decoder":)" + sequence("decoders", choices.some_of(kDecoders));
  json += R"(,"model":)" + std::string(choices.one_of(kModels));
  json += R"(,"post_processor":)" + std::string(choices.one_of(kPostProcessors));
  return json + R"(,"added_tokens":[)" + choices.some_of(kAddedTokens) + "]}";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Choices choices(std::string_view(reinterpret_cast<const char*>(data), size));
  const auto tokenizer = Tokenizer::parse(chosen_tokenizer(choices));
  if (!tokenizer.ok()) {
    LOCKSTEP_CHECK(!tokenizer.error().message.empty());
    return 0;
  }
  const std::string_view text = choices.rest().substr(0, kTextBytesMax);
  const auto ids = tokenizer.value()->encode(text, {.add_bos = false, .parse_special = false});
  LOCKSTEP_CHECK(ids.size() <= text.size() * kTokensPerByteMax + kTokensFree);
  check_text(tokenizer.value(), text);
  return 0;
}

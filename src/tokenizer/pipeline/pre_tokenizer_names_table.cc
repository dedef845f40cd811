#include <algorithm>

#include "tokenizer/pipeline/pre_tokenizer_names.h"

namespace lockstep {
namespace {

#define GPT2_WORDS R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))"
#define CONTRACTIONS R"((?i:'s|'t|'re|'ve|'m|'ll|'d))"
#define SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define SIGNS R"( ?[^\s\p{L}\p{N}]+[\r\n]*|)"
#define CASED_WORDS(end)                                                                \
  R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)" end \
  R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)" end "|"
#define KIMI_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define KIMI_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])"
#define ASCII_SIGN R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~])"
#define DEEPSEEK_WORDS \
  ASCII_SIGN R"([A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" SPACES

constexpr const char* kLlama3Pattern =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)" SIGNS SPACES;
constexpr const char* kQwen2 = CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)" SIGNS SPACES;
constexpr const char* kQwen35 =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" SPACES;
constexpr const char* kSeedCoder =
    CONTRACTIONS R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" SPACES;
constexpr const char* kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|)"
    R"(\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr const char* kTekken = CASED_WORDS("") R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr const char* kO200k =
    CASED_WORDS(CONTRACTIONS "?") R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" SPACES;
constexpr const char* kKimiPattern =
    R"([\p{Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?)" KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTIONS
    "?|"
    R"([^\r\n\p{L}\p{N}]?)" KIMI_UPPER "+" KIMI_LOWER "*" CONTRACTIONS
    "?|"
    R"(\p{N}{1,3}|)" SIGNS SPACES;
constexpr const char* kBloom =
    R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C}]+)";

// The letters of alphabets with case, as DeepSeek's tokenizer.json lists them.
constexpr const char* kDeepSeekLetters =
    R"(\s?[)"
    R"(A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF})"
    R"(\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D})"
    R"(\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5})"
    R"(\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B})"
    R"(\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC})"
    R"(\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115})"
    R"(\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134})"
    R"(\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3})"
    R"(\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17})"
    R"(\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-\x{104D3})"
    R"(\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF})"
    R"(\x{1E900}-\x{1E943})"
    R"(]+)";
constexpr const char* kDeepSeekSigns =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr const char* kDeepSeekHan = R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr const char* kKanaAndHan = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
// White space at the end of a piece; scans each run once, whereas \s+$ would scan it from each
// position.
constexpr const char* kTrailingSpace = R"((?<!\s)\s++\z)";
constexpr const char* kAsianScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF})"
    R"(\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF}\x{0E00}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF})"
    R"(\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
// Groups of three digits, counted from the end of the number.
constexpr const char* kDigitsFromTheEnd =
    R"((?<!\p{N})\p{N}{1,2}(?=(?:\p{N}{3})++(?!\p{N}))|\p{N}{3})";

struct Family {
  std::vector<std::string_view> names;
  NamedPreTokenizer pre_tokenizer;
};

const std::vector<Family>& families() {
  static const std::vector<Family> kFamilies = {
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
        "jina-v5-nano"},
       {{kLlama3Pattern}, true, true}},
      {{"minicpm5"}, {{kLlama3Pattern}, true}},
      {{"dbrx", "smaug-bpe", "chatglm-bpe", "glm4"}, {{kLlama3Pattern}}},
      {{"qwen2", "deepseek-r1-qwen", "kormo", "megrez"}, {{kQwen2}, false, false, true}},
      {{"stablelm2", "hunyuan", "grok-2", "solar-open"}, {{kQwen2}}},
      {{"qwen35"}, {{kQwen35}, false, false, true}},
      {{"deepseek-llm"},
       {{R"([\r\n])", kDeepSeekLetters, kDeepSeekSigns, kTrailingSpace, kDeepSeekHan,
         R"(\p{N}+)"}}},
      {{"deepseek-coder"},
       {{R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekHan, R"(\p{N})"}}},
      {{"deepseek-v3", "hunyuan-dense", "joyai-llm"},
       {{R"(\p{N}{1,3})", kKanaAndHan, DEEPSEEK_WORDS}}},
      {{"falcon"}, {{R"([\p{P}\$\+<=>\^~\|`]+)", GPT2_WORDS, "[0-9][0-9][0-9]"}}},
      {{"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b"},
       {{R"(\p{N})", GPT2_WORDS}}},
      {{"gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "granite-docling", "exaone4",
        "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code",
        "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert"},
       {{GPT2_WORDS}}},
      {{"poro-chat", "bloom", "gpt3-finnish"}, {{kBloom}}},
      {{"viking"}, {{kBloom, R"(\p{N})"}}},
      {{"tekken"}, {{kTekken}, true, true}},
      {{"gpt-4o", "llama4", "minimax-m2"}, {{kO200k}}},
      {{"kimi-k2"}, {{kKimiPattern}}},
      {{"superbpe"}, {{R"(\p{N}+)", kDigitsFromTheEnd}}},
      {{"bailingmoe", "bailingmoe2", "llada-moe"}, {{kBailing}}},
      {{"seed-coder"}, {{kSeedCoder}}},
      {{"afmoe"}, {{kDigitsFromTheEnd, kAsianScripts, DEEPSEEK_WORDS}}},
      {{"chameleon"},
       {{R"(<sentinel:[0-9]+>)", R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)", R"(([\t\n]|    |  ))",
         R"(\p{N})", R"([\p{P}!-/:-@\[-`{-~])", GPT2_WORDS},
        false,
        true}},
      {{"default"}, {{R"([\p{P}\$\+<=>\^~\|]+)", GPT2_WORDS, R"(\p{N}+)", "[0-9][0-9][0-9]"}}},
  };
  return kFamilies;
}

}  // namespace

Result<NamedPreTokenizer> named_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const Family& family : families()) {
    for (const std::string_view candidate : family.names) {
      if (candidate == name) return family.pre_tokenizer;
      known += (known.empty() ? "" : ", ") + std::string(candidate);
    }
  }
  return Error{ErrorCode::kUnsupported,
               "the pre-tokenizer " + std::string(name) + " is unknown; known are " + known};
}

}  // namespace lockstep

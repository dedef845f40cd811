// Texts to tokens and back, with every kind of model and pre-tokenizer: long words, runs of spaces,
// digits and punctuation, combining marks, invalid UTF-8, near-misses of special tokens.
#include <fmt/format.h>

#include <memory>

#include "growth/probe.h"
#include "json/json.h"
#include "tokenizer/formats.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

using Shared = std::shared_ptr<const Tokenizer>;

// A tokenizer that is loaded by the first probe that needs it. Null: it cannot be loaded.
using Source = std::function<Shared()>;

Source once(Source read) {
  return [read = std::move(read), kept = std::make_shared<Shared>()] {
    if (!*kept) *kept = read();
    return *kept;
  };
}

Probe encoding(const std::string& model, std::string shape, size_t items, Source source,
               std::string_view part) {
  return {fmt::format("tokens {}: {}", model, shape), items,
          [source, part = std::string(part)](size_t n) -> Reading {
            return [tokenizer = source(), text = repeated(part, n)] {
              // Letters that a small vocabulary lacks may yield no token.
              return tokenizer &&
                     tokenizer->encode(text, {.parse_special = true}).size() < SIZE_MAX;
            };
          }};
}

// Texts without words known to the model; one item is one or a few letters.
void add_encodings(Probes& probes, const std::string& model, const Source& tokenizer) {
  const std::pair<const char*, std::string_view> shapes[] = {
      {"one letter", "a"},
      {"a long word", "abcab"},
      {"blanks", " "},
      {"lines", "\n"},
      {"blanks and lines", " \n"},
      {"digits", "7"},
      {"signs", "!'"},
      {"quotes", "'"},
      {"marks that combine", "\xCC\x81\xCC\xA3"},
      {"letters of three bytes", "\xE4\xBD\xA0"},
      {"half a character", "\xE4\xBD"},
      {"the mark of a blank", "\xE2\x96\x81"},
      {"words", "some words "},
      {"a special token", "<s>"},
      {"nearly a special token", "<|im_"},
      {"upper and lower", "aB"},
  };
  for (const auto& [name, part] : shapes) {
    const size_t items = std::max<size_t>(300, 3000 / part.size());
    probes.push_back(encoding(model, name, items, tokenizer, part));
  }
}

Shared loaded(const std::string& path) {
  auto tokenizer = Tokenizer::load(LOCKSTEP_SOURCE_DIR "/" + path);
  return tokenizer.ok() ? tokenizer.value() : nullptr;
}

Shared parsed(const std::string& json) {
  auto tokenizer = Tokenizer::parse(json);
  return tokenizer.ok() ? tokenizer.value() : nullptr;
}

std::string bytes_vocab(int first) {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    vocab += fmt::format(",\"<0x{:02X}>\":{}", byte, first + byte);
  }
  return vocab;
}

// Merges of one letter into ever longer words, so that a word takes many merge steps.
Shared byte_fallback() {
  std::string vocab = R"("<unk>":0,"<s>":1,"▁":2,"a":3)";
  std::string merges;
  std::string word = "a";
  for (int i = 0; i < 6; ++i) {
    merges += fmt::format("{}\"{} {}\"", i == 0 ? "" : ",", word, word);
    word += word;
    vocab += fmt::format(",\"{}\":{}", word, 4 + i);
  }
  return parsed(R"({"added_tokens":[{"id":1,"content":"<s>","special":true,"normalized":false}],
    "normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},
      {"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
    "decoder":{"type":"Sequence","decoders":[
      {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
      {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},
    "model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,
      "vocab":{)" +
                vocab + bytes_vocab(10) + "},\"merges\":[" + merges + "]}}");
}

Shared unigram() {
  return parsed(R"({"added_tokens":[{"id":0,"content":"<unk>","special":true,"normalized":false}],
    "normalizer":{"type":"NFKC"},"pre_tokenizer":{"type":"Metaspace","replacement":"▁",
      "prepend_scheme":"always"},
    "decoder":{"type":"Metaspace","replacement":"▁","prepend_scheme":"always"},
    "model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-1],["a",-2],["aa",-2.5],
      ["aaaa",-3],["b",-2],["ab",-2.2],["c",-3],["s",-4],["▁some",-5]]}})");
}

Shared word_piece() {
  return parsed(R"({"added_tokens":[{"id":0,"content":"[UNK]","special":true,"normalized":false}],
    "normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,
      "strip_accents":null,"lowercase":true},
    "pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece","prefix":"##",
      "cleanup":true},
    "model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",
      "max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1,"##a":2,"##b":3,"some":4,"!":5}}})");
}

// Its pattern takes up to a hundred thousand steps at each letter, so that the limit of a text's
// steps decides. Groups make cheap steps of single letters: a{1,250} costs forty times as much.
Shared slow_pattern() {
  return parsed(R"x({"pre_tokenizer":{"type":"Split","behavior":"Isolated",
      "pattern":{"Regex":"(?:(?:a|b){1,250}(?:a|b){1,250}c|a)"}},
    "decoder":{"type":"Fuse"},
    "model":{"type":"BPE","unk_token":"u","vocab":{"u":0,"a":1},"merges":[]}})x");
}

// A tiny byte vocabulary with one of the named pre-tokenizers.
Shared named(std::string_view pre) {
  std::string ranks;
  for (const char* line :
       {"YQ== 0\n", "Yg== 1\n", "IA== 2\n", "YWI= 3\n", "IGFi 4\n", "MQ== 5\n"}) {
    ranks += line;
  }
  auto tokenizer = read_tiktoken(ranks, nullptr, pre);
  return tokenizer.ok() ? tokenizer.value() : nullptr;
}

Probe decoding(const std::string& model, Source source) {
  return {fmt::format("text of {}", model), 3000, [source](size_t n) -> Reading {
            const Shared tokenizer = source();
            if (!tokenizer) return [] { return false; };
            std::vector<int32_t> ids;
            for (size_t i = 0; i < n; ++i) {
              ids.push_back(static_cast<int32_t>(i % static_cast<size_t>(tokenizer->vocab_size())));
            }
            return [tokenizer, ids] { return tokenizer->decode(ids).ok(); };
          }};
}

Probe streaming(const std::string& model, Source source) {
  return {fmt::format("stream of {}", model), 3000, [source](size_t n) -> Reading {
            return [tokenizer = source(), n] {
              if (!tokenizer) return false;
              StreamDecoder decoder(tokenizer, true);
              size_t bytes = 0;
              for (size_t i = 0; i < n; ++i) {
                const size_t id = i % static_cast<size_t>(tokenizer->vocab_size());
                bytes += decoder.push(static_cast<int32_t>(id)).size();
              }
              // The leading special tokens produce no text.
              return bytes + decoder.finish().size() < SIZE_MAX;
            };
          }};
}

// Pieces of a prompt, as a template makes them from many messages.
Probe pieces(const std::string& model, Source source) {
  return {fmt::format("pieces {}: many", model), 2000, [source](size_t n) -> Reading {
            return [tokenizer = source(), n] {
              std::vector<PromptText> texts;
              for (size_t i = 0; i < n; ++i)
                texts.push_back({i % 2 == 0 ? "<s>" : "a", i % 2 == 0});
              return tokenizer && tokenizer->encode_pieces(texts, true).size() < SIZE_MAX;
            };
          }};
}

bool reads_tokenizer(const std::string& json) {
  return Tokenizer::parse(json).ok();
}

// Vocabularies and merges themselves come from untrusted files.
#define DECODER                                                              \
  R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":)" \
  R"({"String":"_"},"content":" "},{"type":"ByteFallback"},{"type":"Fuse"}]},)"
#define SMALL_MODEL R"("model":{"type":"BPE","unk_token":"u","vocab":{"u":0,"a":1},"merges":[]}})"

Probes vocabularies() {
  Probes probes = list_probes(
      {
          {"tokenizer.json: many words", 1500,
           "{" DECODER R"("model":{"type":"BPE","unk_token":"u","merges":[],"vocab":{"u":0,)",
           R"("w@":1@)", "}}}"},
          {"tokenizer.json: many added tokens", 800, R"({"added_tokens":[)",
           R"({"id":1@,"content":"<t@>","special":true,"normalized":false})",
           "]," DECODER SMALL_MODEL},
          {"tokenizer.json: many normalizers", 500,
           R"({"normalizer":{"type":"Sequence","normalizers":[)", R"({"type":"Lowercase"})",
           "]}," DECODER SMALL_MODEL},
      },
      reads_tokenizer);
  return probes;
}

}  // namespace

Probes tokenizer_probes() {
  Probes probes = vocabularies();
  const std::pair<std::string, Source> models[] = {
      {"stories", [] { return loaded("models/stories260K"); }},
      {"stories.model", [] { return loaded("models/stories260K/tokenizer.model"); }},
      {"byte fallback", byte_fallback},
      {"unigram", unigram},
      {"word pieces", word_piece},
      {"llama 3", [] { return named("llama-bpe"); }},
      {"qwen 2", [] { return named("qwen2"); }},
      {"deepseek", [] { return named("deepseek-llm"); }},
      {"deepseek 3", [] { return named("deepseek-v3"); }},
      {"gpt-4o", [] { return named("gpt-4o"); }},
      {"kimi", [] { return named("kimi-k2"); }},
      {"falcon", [] { return named("falcon"); }},
  };
  for (const auto& [name, source] : models) {
    const Source tokenizer = once(source);
    add_encodings(probes, name, tokenizer);
    probes.push_back(pieces(name, tokenizer));
    probes.push_back(decoding(name, tokenizer));
    probes.push_back(streaming(name, tokenizer));
  }
  probes.push_back(encoding("of a slow pattern", "one letter", 150, once(slow_pattern), "a"));
  return probes;
}

}  // namespace lockstep

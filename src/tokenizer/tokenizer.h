// Tokenizer: converts text to token ids and back, as the model's own files define it. Unknown
// features of a file are a kUnsupported error that names the part. Immutable after load: any thread
// may use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

// A part of a prompt: template text, in which special tokens are recognised, or user input, which
// never becomes a special token.
struct PromptText {
  std::string_view text;
  bool parse_special;
};

class Tokenizer {
 public:
  struct EncodeOptions {
    bool add_bos = false;
    // Special tokens spelled out in the text become tokens; otherwise they are plain text.
    bool parse_special = false;
  };

  // `path`: a model folder (its tokenizer.json, tekken.json, tokenizer.model or tiktoken.model, the
  // first that exists, else its first .gguf) or any of these files; the format is detected from the
  // content. `pre`: a pre-tokenizer (llama.cpp's names) that replaces the one named in GGUF and
  // tiktoken files.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path,
                                                       std::string_view pre = "");
  // A tokenizer.json.
  static Result<std::shared_ptr<const Tokenizer>> parse(std::string_view tokenizer_json);
  virtual ~Tokenizer() = default;

  virtual int vocab_size() const = 0;
  virtual std::optional<int32_t> bos_id() const = 0;
  // The token that the post-processor adds after a text: embedding models take their result there.
  // encode() does not add it.
  virtual std::optional<int32_t> end_id() const { return std::nullopt; }
  // Invalid UTF-8 in `text` is read as U+FFFD. Stops early once the thread's Work
  // (base/threads/work.h) is over: callers with one then call Work::check().
  virtual std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const = 0;
  // The pieces as one text: tokens may cross their borders. Special tokens are found only in pieces
  // that allow it. This default encodes each piece alone, which suffices for a tokenizer that
  // merges nothing.
  virtual std::vector<int32_t> encode_pieces(std::span<const PromptText> pieces,
                                             bool add_bos) const;
  // The whole text: special tokens printed, the dummy space stripped, bad UTF-8 as U+FFFD. Ids
  // outside the vocabulary are a kInvalidArgument error.
  virtual Result<std::string> decode(std::span<const int32_t> ids) const = 0;
  // The raw bytes of one token in the middle of a text ("\u2581" as a space); empty for special
  // tokens.
  virtual std::string token_bytes(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  // A text that starts with a SentencePiece word has a dummy space, which decode() strips.
  virtual bool strips_leading_space() const { return true; }
};

// Turns generated tokens into text as they arrive, never splitting a UTF-8 character. The results
// of push() and finish() add up to decode() of the same ids without special tokens, except those in
// `printed`. One thread.
class StreamDecoder {
 public:
  // `strip_leading_space`: drop the dummy space if the tokenizer has one; false in the middle of a
  // text.
  // `printed`: special tokens that are part of the text, with their texts.
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool strip_leading_space,
                std::map<int32_t, std::string> printed = {});

  // Returns the text that is complete; holds back bytes of an incomplete character (at most 3).
  std::string push(int32_t id);
  // At the end: the held bytes as U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::map<int32_t, std::string> printed_;
  std::string held_;
  bool strip_leading_space_;
};

}  // namespace lockstep

// Tokenizer: text to token ids and back, as the model's own files define it. What a file asks for
// and lockstep does not know is a kUnsupported error that names the part. Immutable after load: any
// thread may use it.
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

// A part of a prompt: text of the template, in which special tokens are special, or text that
// somebody typed, which never becomes a special token.
struct PromptText {
  std::string_view text;
  bool parse_special;
};

class Tokenizer {
 public:
  struct EncodeOptions {
    bool add_bos = false;
    // Special tokens written out in the text become that token; otherwise they are plain text.
    bool parse_special = false;
  };

  // `path`: a model folder (its tokenizer.json, tekken.json, tokenizer.model or tiktoken.model, the
  // first that is there, else its only .gguf) or any of these files; what a file is, its content
  // says. `pre`: the name of a pre-tokenizer (llama.cpp's names) for GGUF and tiktoken files,
  // instead of the one they name.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path,
                                                       std::string_view pre = "");
  // A tokenizer.json.
  static Result<std::shared_ptr<const Tokenizer>> parse(std::string_view tokenizer_json);
  virtual ~Tokenizer() = default;

  virtual int vocab_size() const = 0;
  virtual std::optional<int32_t> bos_id() const = 0;
  // What the model's post-processor puts behind a text: embedding models read their answer there.
  // encode() does not add it.
  virtual std::optional<int32_t> end_id() const { return std::nullopt; }
  // Invalid UTF-8 in `text` is read as U+FFFD.
  virtual std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const = 0;
  // The pieces as one text: tokens may reach over their borders. Special tokens are found only
  // where they lie in pieces that allow it. This default encodes each piece alone, which is enough
  // for a tokenizer that merges nothing.
  virtual std::vector<int32_t> encode_pieces(std::span<const PromptText> pieces,
                                             bool add_bos) const;
  // The whole text: special tokens printed, the dummy space stripped, bad UTF-8 as U+FFFD. Ids
  // outside the vocabulary are a kInvalidArgument error.
  virtual Result<std::string> decode(std::span<const int32_t> ids) const = 0;
  // The raw bytes of one token in the middle of a text ("\u2581" as a space); special tokens give
  // nothing.
  virtual std::string token_bytes(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  // A text that starts with a SentencePiece word has a dummy space, which decode() strips.
  virtual bool strips_leading_space() const { return true; }
};

// Turns generated tokens into text as they come, never half a UTF-8 character. All that push() and
// finish() return is, one behind the other, what decode() makes of the same ids without the special
// ones, except for those that are to be printed. One thread.
class StreamDecoder {
 public:
  // `strip_leading_space`: drop the dummy space if the tokenizer has one; false in the middle of a
  // text.
  // `printed`: special tokens that are part of the text, with what they stand for.
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool strip_leading_space,
                std::map<int32_t, std::string> printed = {});

  // What can be printed now; bytes of an incomplete character are held back (at most 3).
  std::string push(int32_t id);
  // What is left at the end: held bytes as U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::map<int32_t, std::string> printed_;
  std::string held_;
  bool strip_leading_space_;
};

}  // namespace lockstep

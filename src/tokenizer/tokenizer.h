// Tokenizer: text to token ids and back, from a Hugging Face tokenizer.json. This version knows
// SentencePiece-style BPE with byte fallback; what it does not know is a kUnsupported error that
// names the part. Immutable after load: any thread may use it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

class Tokenizer {
 public:
  struct EncodeOptions {
    bool add_bos = false;
    // Special tokens written out in the text become that token; otherwise they are plain text.
    bool parse_special = false;
  };

  // `path`: a model folder or a tokenizer.json.
  static Result<std::shared_ptr<const Tokenizer>> load(const std::filesystem::path& path);
  static Result<std::shared_ptr<const Tokenizer>> parse(std::string_view tokenizer_json);
  virtual ~Tokenizer() = default;

  virtual int vocab_size() const = 0;
  virtual std::optional<int32_t> bos_id() const = 0;
  // Invalid UTF-8 in `text` is read as U+FFFD.
  virtual std::vector<int32_t> encode(std::string_view text, EncodeOptions options) const = 0;
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
// ones. One thread.
class StreamDecoder {
 public:
  // `strip_leading_space`: drop the dummy space if the tokenizer has one; false in the middle of a
  // text.
  StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool strip_leading_space);

  // What can be printed now; bytes of an incomplete character are held back (at most 3).
  std::string push(int32_t id);
  // What is left at the end: held bytes as U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string held_;
  bool strip_leading_space_;
};

}  // namespace lockstep

// Properties of every tokenizer that loads, whatever its file contains: for the fuzz targets of
// tokenizers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/utf8.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {

inline constexpr size_t kStreamedBytesMax = 4096;

// A stream prints the same as decode() of the same ids without the special ones.
inline void check_stream(const std::shared_ptr<const Tokenizer>& tokenizer,
                         const std::vector<int32_t>& ids) {
  StreamDecoder stream(tokenizer, true);
  std::string streamed;
  std::vector<int32_t> plain;
  for (const int32_t id : ids) {
    const std::string piece = stream.push(id);
    LOCKSTEP_CHECK(is_valid_utf8(piece));
    streamed += piece;
    if (!tokenizer->is_special(id)) plain.push_back(id);
  }
  streamed += stream.finish();
  const auto whole = tokenizer->decode(plain);
  LOCKSTEP_CHECK(whole.ok());
  LOCKSTEP_CHECK(whole.value() == streamed);
}

// Special tokens in the text come only from the second half.
inline void check_pieces(const Tokenizer& tokenizer, std::string_view text) {
  const size_t middle = text.size() / 2;
  const PromptText pieces[] = {{text.substr(0, middle), false}, {text.substr(middle), true}};
  const auto ids = tokenizer.encode_pieces(pieces, false);
  LOCKSTEP_CHECK(tokenizer.decode(ids).ok());
  for (const int32_t id : tokenizer.encode(text.substr(0, middle), {})) {
    LOCKSTEP_CHECK(id >= 0 && id < tokenizer.vocab_size());
  }
}

inline void check_text(const std::shared_ptr<const Tokenizer>& tokenizer, std::string_view text) {
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer->encode(text, {.add_bos = true, .parse_special = parse_special});
    for (const int32_t id : ids) LOCKSTEP_CHECK(id >= 0 && id < tokenizer->vocab_size());
    LOCKSTEP_CHECK(tokenizer->decode(ids).ok());
    check_pieces(*tokenizer, text);
    if (text.size() <= kStreamedBytesMax) check_stream(tokenizer, ids);
  }
}

}  // namespace lockstep

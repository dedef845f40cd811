// Base64 with the standard alphabet, used for bytes in tiktoken files and tokenizer.json, and for
// embeddings in the HTTP API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// With padding.
std::string encode_base64(std::string_view bytes);

// Nullopt if `text` is not base64; padding may be missing.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace lockstep

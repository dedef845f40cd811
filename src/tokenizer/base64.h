// Base64 with the standard alphabet, as tiktoken and tokenizer.json write bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

// Nullopt if `text` is not base64; padding may be missing.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace lockstep

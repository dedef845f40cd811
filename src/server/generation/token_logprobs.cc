#include "server/generation/token_logprobs.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace lockstep {
namespace {

std::string token_text(int32_t id, const Tokenizer& tokenizer) {
  if (id < 0 || id >= tokenizer.vocab_size()) return {};
  if (!tokenizer.is_special(id)) return tokenizer.token_bytes(id);
  auto text = tokenizer.decode(std::span(&id, 1));
  return text.ok() ? std::move(text.value()) : std::string();
}

JsonObject json_of(const TextLogprob& one) {
  JsonArray bytes;
  for (const char byte : one.bytes) bytes.emplace_back(static_cast<uint8_t>(byte));
  return {{"token", replace_invalid_utf8(one.bytes)},
          {"logprob", double{one.logprob}},
          {"bytes", std::move(bytes)}};
}

}  // namespace

TokenLogprobs token_logprobs(std::span<const TokenLogprob> logprobs, const Tokenizer& tokenizer,
                             int64_t characters_before) {
  const auto text_of = [&](const TokenLogprob& one) {
    return TextLogprob{token_text(one.token, tokenizer), one.logprob};
  };
  TokenLogprobs made{
      .token = text_of(logprobs.front()), .top = {}, .characters_before = characters_before};
  for (const TokenLogprob& one : logprobs.subspan(1)) made.top.push_back(text_of(one));
  return made;
}

JsonObject chat_logprobs_json(const TokenLogprobs& logprobs) {
  JsonArray top;
  for (const TextLogprob& one : logprobs.top) top.push_back(json_of(one));
  JsonObject json = json_of(logprobs.token);
  json["top_logprobs"] = std::move(top);
  return json;
}

// "top_logprobs" is keyed by text: of tokens with the same text the likeliest stays, and the chosen
// token is always included.
JsonObject completion_logprobs_json(std::span<const TokenLogprobs> logprobs) {
  JsonArray tokens, own, tops, offsets;
  for (const TokenLogprobs& one : logprobs) {
    tokens.emplace_back(replace_invalid_utf8(one.token.bytes));
    own.emplace_back(double{one.token.logprob});
    JsonObject top;
    for (const TextLogprob& likely : one.top) {
      top.emplace(replace_invalid_utf8(likely.bytes), double{likely.logprob});
    }
    top.emplace(replace_invalid_utf8(one.token.bytes), double{one.token.logprob});
    tops.push_back(std::move(top));
    offsets.emplace_back(one.characters_before);
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(own)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

int64_t count_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; });
}

}  // namespace lockstep

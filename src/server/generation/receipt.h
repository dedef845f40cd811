// Receipts: what an answer of a model is the answer to, as one line of text that anybody can keep.
// It names the model by its content, and has a hash of the request (the prompt's tokens, the
// options that move bits, the seed) and one of the answer's tokens. POST /v1/verify checks an
// answer by it. Pure; docs/http-api.md has the texts that are hashed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/request/errors.h"

namespace lockstep {

enum class AnswerEnd : uint8_t {
  kToken,   // the model ended it
  kLength,  // max_tokens or the context did
  kString,  // a stop string did, which is in its tokens
};

struct Receipt {
  std::string version;  // of lockstep
  std::string model;    // ModelStatus::identity
  std::string request;  // request_hash()
  std::string answer;   // answer_hash()
  AnswerEnd end = AnswerEnd::kToken;
  uint64_t seed = 0;  // of `request`, which may have had none of its own

  bool operator==(const Receipt&) const = default;
};

std::string receipt_text(const Receipt& receipt);
// 400 for anything that receipt_text() does not write.
ApiResult<Receipt> parse_receipt(std::string_view text);

// `request` as it is submitted; its max_tokens, client and hints for speed do not count.
std::string request_text(const GenerateRequest& request, const std::vector<std::string>& stop);
std::string request_hash(const GenerateRequest& request, const std::vector<std::string>& stop);
std::string answer_hash(std::span<const int32_t> ids, AnswerEnd end);

}  // namespace lockstep

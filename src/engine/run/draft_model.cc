#include "engine/run/draft_model.h"

#include <fmt/core.h>

#include <algorithm>

#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

Error refused(const ModelOfFiles& draft, ErrorCode code, const std::string& reason) {
  return {code, fmt::format("the draft model {} cannot be used: {}", draft.path.string(), reason)};
}

// The first id that they write differently; -1: none.
int32_t first_difference(const Tokenizer& a, const Tokenizer& b) {
  const int32_t common = std::min(a.vocab_size(), b.vocab_size());
  for (int32_t id = 0; id < common; ++id) {
    if (a.is_special(id) != b.is_special(id) || a.token_bytes(id) != b.token_bytes(id)) return id;
  }
  return -1;
}

}  // namespace

Status check_draft_model(const ModelOfFiles& draft, int context) {
  if (draft.config.delta) {
    return refused(draft, ErrorCode::kUnsupported, "it has recurrent layers");
  }
  if (draft.config.positions_max >= context) return Ok{};
  return refused(draft, ErrorCode::kInvalidArgument,
                 fmt::format("it has {} positions, the context has {}: lower --context",
                             draft.config.positions_max, context));
}

// Published models of one family may have a few more rows than tokens. Without tokenizers nothing
// but the number of ids can be compared.
Status check_draft_tokens(const ModelOfFiles& model, const ModelOfFiles& draft) {
  const auto own = Tokenizer::load(model.path), other = Tokenizer::load(draft.path);
  if (!own.ok() || !other.ok()) {
    if (model.config.vocab_size == draft.config.vocab_size) return Ok{};
    return refused(draft, ErrorCode::kInvalidArgument,
                   fmt::format("it has {} tokens and the model {}", draft.config.vocab_size,
                               model.config.vocab_size));
  }
  const int32_t different = first_difference(*own.value(), *other.value());
  if (different < 0) return Ok{};
  return refused(draft, ErrorCode::kInvalidArgument,
                 fmt::format("token {} is not the same as in the model: use one of the same family",
                             different));
}

}  // namespace lockstep

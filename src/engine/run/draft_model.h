// Whether a model can guess the tokens of another one. Pure, but for the files of tokenizers.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "model/config/config.h"

namespace lockstep {

struct ModelOfFiles {
  const std::filesystem::path& path;
  const ModelConfig& config;
};

// kUnsupported or kInvalidArgument, with the reason: it must have a state of pages alone and hold
// `context` positions.
Status check_draft_model(const ModelOfFiles& draft, int context);
// The same: both must mean the same by the ids that both have. Reads the tokenizers, which takes as
// long as loading them.
Status check_draft_tokens(const ModelOfFiles& model, const ModelOfFiles& draft);

}  // namespace lockstep

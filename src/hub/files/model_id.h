// ModelId: the name of a model on a Hugging Face hub, as typed: "org/name", "org/name@revision",
// "org/name/file.gguf@revision". Everything in it is checked, since folders are named after it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr std::string_view kDefaultRevision = "main";

struct ModelId {
  std::string repository;  // "org/name"
  std::string revision;    // a branch, tag or commit; empty if none was given
  std::string file;        // one .gguf file of the repository; empty for the whole model

  std::string_view revision_or_default() const {
    return revision.empty() ? kDefaultRevision : std::string_view(revision);
  }
  std::string text() const;  // as typed
};

// kInvalidArgument says what is wrong.
Result<ModelId> parse_model_id(std::string_view text);

// Whether a file's path on a hub is safe inside a folder of ours: relative, with no part that is
// empty, "." or "..", no backslash or control character, not too long.
bool is_safe_file_name(std::string_view name);

}  // namespace lockstep

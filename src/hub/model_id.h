// ModelId: the name of a model on a Hugging Face hub, as it is typed: "org/name",
// "org/name@revision", "org/name/file.gguf@revision". Everything in it is checked, since folders
// are named after it.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

inline constexpr std::string_view kDefaultRevision = "main";

struct ModelId {
  std::string repository;  // "org/name"
  std::string revision;    // a branch, tag or commit; empty where none was named
  std::string file;        // one .gguf file of the repository; empty for the model as a whole

  std::string_view revision_or_default() const {
    return revision.empty() ? kDefaultRevision : std::string_view(revision);
  }
  std::string text() const;  // as it is typed
};

// kInvalidArgument with what is wrong.
Result<ModelId> parse_model_id(std::string_view text);

// Whether a hub's path of a file may be used below a folder of ours: relative, with no part that is
// empty, "." or "..", no backslash or control character, of a sensible length.
bool is_safe_file_name(std::string_view name);

}  // namespace lockstep

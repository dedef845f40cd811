// Which files of a repository are downloaded. Repositories hold the weights in several formats;
// what lockstep loads is one of them and the small files beside it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/model_files.h"
#include "hub/model_id.h"

namespace lockstep {

struct FileRules {
  bool all = false;
  std::vector<std::string> include;  // patterns like "*Q4_K_M*": only weights that match one
  std::vector<std::string> exclude;  // and nothing that matches one of these
};

// Without rules: the safetensors files of the top folder (not "consolidated*", which is the same
// model again, where there are others), or the GGUF file if there is one, split or not; config,
// tokenizer, templates, licenses. kInvalidArgument with the choices where there are several GGUF
// files, and kNotFound where no weights are left.
Result<ModelFiles> choose_files(const ModelFiles& files, const ModelId& id, const FileRules& rules);

// "*" stands for any characters, also "/", and "?" for one.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace lockstep

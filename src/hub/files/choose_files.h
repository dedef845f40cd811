// Chooses the files of a repository to download. Repositories hold the weights in several formats;
// lockstep loads one of them, plus the small files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/files/model_files.h"
#include "hub/files/model_id.h"

namespace lockstep {

struct FileRules {
  bool all = false;
  std::vector<std::string> include;  // patterns like "*Q4_K_M*": only weights that match one
  std::vector<std::string> exclude;  // and no files that match one of these
};

// Without rules: the safetensors files of the top folder (not "consolidated*", the same model
// again, if there are others) and of a draft layer in mtp/, or the only GGUF model, split or not;
// config, tokenizer, templates, licenses. kInvalidArgument lists the choices if there are several
// GGUF models; kNotFound if no weights remain.
Result<ModelFiles> choose_files(const ModelFiles& files, const ModelId& id, const FileRules& rules);

// "*" matches any characters, including "/", and "?" any one.
bool matches(std::string_view pattern, std::string_view name);

}  // namespace lockstep

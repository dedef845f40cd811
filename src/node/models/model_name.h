// Where a model is, and the name by which clients request it. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace lockstep {

// A folder's last component, a .gguf file's stem, or a hub's "org/name": the name that
// node/models/model_folder.h gives the loaded model.
std::string model_name_of(std::string_view model);

// A hub's "org/name", or the shape of a published model.
bool is_published_model(std::string_view model);

// Whether every machine can look there: a path from the root, or a published model. Does not look
// at the disk.
Status check_model_location(std::string_view model);

}  // namespace lockstep

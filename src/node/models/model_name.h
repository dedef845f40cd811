// The name by which clients request a model, from its location. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// A folder's last component, a .gguf file's stem, or a hub's "org/name": the name that
// node/models/model_folder.h gives the loaded model.
std::string model_name_of(std::string_view model);

}  // namespace lockstep

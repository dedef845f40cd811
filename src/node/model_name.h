// The name under which clients ask for a model, from where it lies. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Of a folder its last component, of a .gguf file its stem, of a model of a hub "org/name": as
// node/model_folder.h names what is loaded.
std::string model_name_of(std::string_view model);

}  // namespace lockstep

// Resolves a MODEL that the cluster is to load: a folder or file of this machine by its full path,
// or a hub's model by its id, and the name for clients. Reads the disk.
#pragma once

#include <string>

#include "base/result.h"

namespace lockstep {

struct WantedModel {
  std::string name;
  std::string path;
};

// kNotFound if it is neither.
Result<WantedModel> wanted_model(const std::string& model);

}  // namespace lockstep

// What a MODEL means that the cluster is to load: a folder or file of this machine by its whole
// path, or a model of a hub by its id, and the name that clients will use. Reads the disk.
#pragma once

#include <string>

#include "base/result.h"

namespace lockstep {

struct WantedModel {
  std::string name;
  std::string path;
};

// kNotFound where it is neither.
Result<WantedModel> wanted_model(const std::string& model);

}  // namespace lockstep

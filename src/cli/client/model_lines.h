// One line for each model of /cluster/status, for `lockstep ps`. Pure.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace lockstep {

// With a heading; empty without models.
std::vector<std::string> model_lines(const Json& status);

}  // namespace lockstep

// The data of planner/profiles/profiles.h.
#pragma once

#include <string_view>

namespace lockstep {

extern const std::string_view kMachineProfiles;  // a JSON object, by name
extern const std::string_view kLinkProfiles;

}  // namespace lockstep

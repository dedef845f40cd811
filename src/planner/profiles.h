// Known machines and links, so that a cluster can be planned before it is bought. Facts from
// vendors and reviews with their sources; what is no published fact is listed under "estimates".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "planner/links.h"
#include "planner/machine.h"

namespace lockstep {

// (name, description) of all, for messages and help.
struct ProfileName {
  std::string name;
  std::string about;
};
std::vector<ProfileName> machine_profiles();
std::vector<ProfileName> link_profiles();

// kNotFound names the profiles that there are.
Result<Machine> machine_profile(std::string_view name);
Result<LinkFigures> link_profile(std::string_view name);

// Reads figures over those that are there already. kInvalidArgument for an unknown key, a figure
// that makes no sense, or one that is missing in the end; `what` names the object.
Result<Machine> read_machine(const JsonObject& json, Machine machine, std::string_view what);
Result<LinkFigures> read_link(const JsonObject& json, LinkFigures link, std::string_view what);

// What the kernels reach of the memory bandwidth of the machines whose speeds are published.
struct PublishedConstants {
  double efficiency = 0;
  double kernel_us = 0;
  double exchange_us = 0;  // of one all-reduce, wire and all
};
PublishedConstants m3_ultra_constants();

}  // namespace lockstep

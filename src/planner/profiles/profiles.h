// Known machines and links, so that a cluster can be planned before it is bought. Facts from
// vendors and reviews with their sources; anything not published is listed under "estimates".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"
#include "planner/facts/links.h"
#include "planner/facts/machine.h"

namespace lockstep {

// (name, description) of all, for messages and help.
struct ProfileName {
  std::string name;
  std::string about;
};
std::vector<ProfileName> machine_profiles();
std::vector<ProfileName> link_profiles();

// kNotFound lists the existing profiles.
Result<Machine> machine_profile(std::string_view name);
Result<LinkFigures> link_profile(std::string_view name);

// Reads figures that override those given. kInvalidArgument for an unknown key, an invalid figure,
// or one that is missing in the end; `what` names the object.
Result<Machine> read_machine(const JsonObject& json, Machine machine, std::string_view what);
Result<LinkFigures> read_link(const JsonObject& json, LinkFigures link, std::string_view what);

// The part of the memory bandwidth that kernels reach on the machines with published speeds.
struct PublishedConstants {
  double efficiency = 0;
  double kernel_us = 0;
  double exchange_us = 0;  // of one all-reduce, including the link
};
PublishedConstants m3_ultra_constants();

}  // namespace lockstep

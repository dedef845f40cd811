// Which model a user wants who named none: the loaded one, or one of a list.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/client/node_client.h"

namespace lockstep {

struct PickableModel {
  std::string name;   // for open_node_model()
  std::string about;  // "ready", "4.20 GB on this disk"
};

// Those of a node's status and, without any there, of its GET /cluster/disk (an empty object: not
// asked): whole models.
std::vector<PickableModel> pickable_models(const Json& status, const Json& disk);
// "1  qwen3-0.6b  ready"
std::vector<std::string> picker_lines(const std::vector<PickableModel>& models);
// The user typed a number of the list, or the beginning of exactly one name. nullptr: neither.
const PickableModel* picked_model(const std::vector<PickableModel>& models, std::string_view typed);

// The only served model, unless `asks_always`; else the user's choice on a terminal.
// kInvalidArgument with the names where nobody can be asked. `status`: the node's.
Result<std::string> pick_model(const NodeFlags& flags, const Json& status, bool asks_always);

}  // namespace lockstep

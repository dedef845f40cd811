#include "cli/client/restart_watch.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/client/cluster_text.h"
#include "cli/client/node_client.h"

namespace lockstep {
namespace {

bool is_alive(const Json& node) {
  const std::string state = text_in(node, "state");
  return state == "alive" || state == "suspect";
}

bool is_named(const Json& node, const std::string& name) {
  if (text_in(node, "name") == name) return true;
  return name.size() >= kShortIdDigits && text_in(node, "id").starts_with(name);
}

Result<const Json*> node_named(const Json& status, const std::string& name) {
  const Json* found = nullptr;
  std::string all;
  for (const Json& node : list_in(status, "nodes")) {
    all += (all.empty() ? "" : ", ") + name_of_node(node);
    if (!is_named(node, name)) continue;
    if (found != nullptr) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("several nodes are named {}: write the first {} digits of the id of "
                               "one",
                               name, kShortIdDigits)};
    }
    found = &node;
  }
  if (found != nullptr) return found;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("there is no node {}; the nodes are {}", name, all)};
}

Result<std::vector<const Json*>> chosen_nodes(const Json& status,
                                              const std::vector<std::string>& names) {
  std::vector<const Json*> nodes;
  for (const std::string& name : names) {
    const Json* const node = TRY(node_named(status, name));
    if (!is_alive(*node)) {
      return Error{ErrorCode::kPeerLost,
                   name_of_node(*node) + " does not answer: start it on its own machine"};
    }
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  if (!names.empty()) return nodes;
  for (const Json& node : list_in(status, "nodes")) {
    if (is_alive(node)) nodes.push_back(&node);
  }
  return nodes;
}

int place_in_order(const Json& node) {
  if (flag_in(node, "is_self")) return 2;
  return flag_in(node, "is_coordinator") ? 1 : 0;
}

}  // namespace

Result<std::vector<NodeToRestart>> nodes_to_restart(const Json& status,
                                                    const std::vector<std::string>& names) {
  std::vector<const Json*> nodes = TRY(chosen_nodes(status, names));
  std::stable_sort(nodes.begin(), nodes.end(), [](const Json* a, const Json* b) {
    return place_in_order(*a) < place_in_order(*b);
  });
  std::vector<NodeToRestart> order;
  for (const Json* node : nodes) {
    order.push_back({.id = text_in(*node, "id"),
                     .name = name_of_node(*node),
                     .life = text_in(*node, "life"),
                     .is_self = flag_in(*node, "is_self")});
  }
  return order;
}

std::vector<std::string> ready_models(const Json& status) {
  std::vector<std::string> names;
  for (const Json& model : list_in(status, "models")) {
    const Json* const wanted = find(model, "wanted");
    const bool is_on_demand = wanted != nullptr && number_in(*wanted, "idle_unload_s") > 0;
    if (state_text(model) != "ready" || is_on_demand) continue;
    const auto groups = list_in(model, "groups");
    const auto ready = std::count_if(groups.begin(), groups.end(), [](const Json& group) {
      return text_in(group, "phase") == "ready";
    });
    names.insert(names.end(), std::max<size_t>(1, static_cast<size_t>(ready)),
                 text_in(model, "name"));
  }
  return names;
}

std::optional<std::string> missing_after_restart(const Json& status, const NodeToRestart& node,
                                                 const std::vector<std::string>& models) {
  const auto nodes = list_in(status, "nodes");
  const auto found = std::find_if(nodes.begin(), nodes.end(),
                                  [&](const Json& one) { return text_in(one, "id") == node.id; });
  if (found == nodes.end() || !is_alive(*found)) return "it is away";
  if (text_in(*found, "life") == node.life) return "its requests are finishing";
  const std::vector<std::string> ready = ready_models(status);
  for (const std::string& model : models) {
    const auto now = std::count(ready.begin(), ready.end(), model);
    const auto before = std::count(models.begin(), models.end(), model);
    if (now == 0) return model + " is not ready";
    if (now < before) return fmt::format("{} has {} of {} groups", model, now, before);
  }
  return std::nullopt;
}

}  // namespace lockstep

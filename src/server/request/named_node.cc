#include "server/request/named_node.h"

#include <fmt/core.h>

#include <vector>

namespace lockstep {
namespace {

// "alpha, beta, 1a2b3c4d"
std::string node_names(const ClusterReport& report) {
  std::string names;
  for (const ClusterNodeReport& node : report.nodes) {
    const std::string name = node.name.empty() ? node.id.short_text() : node.name;
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "none" : names;
}

}  // namespace

ApiResult<NodeId> node_named(const ClusterReport& report, const std::string& name,
                             std::string_view field) {
  const bool is_id_part = name.size() >= NodeId::kShortDigits;
  std::vector<NodeId> found;
  for (const ClusterNodeReport& node : report.nodes) {
    const bool is_meant = node.name == name || (is_id_part && node.id.text().starts_with(name));
    if (is_meant) found.push_back(node.id);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return bad_field(std::string(field), fmt::format("there is no node \"{}\"; the nodes are {}",
                                                     name, node_names(report)));
  }
  return bad_field(std::string(field),
                   fmt::format("{} nodes are named \"{}\": write the first {} digits of "
                               "the id of one",
                               found.size(), name, NodeId::kShortDigits));
}

}  // namespace lockstep

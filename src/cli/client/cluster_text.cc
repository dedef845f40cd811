#include "cli/client/cluster_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>

#include "cli/client/node_client.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

std::string bytes_or_dash(int64_t bytes) {
  return bytes > 0 ? bytes_text(static_cast<uint64_t>(bytes)) : "-";
}

std::string memory_text(const Json& node) {
  const int64_t budget = number_in(node, "budget_bytes");
  if (budget <= 0) return "-";
  const int64_t free = std::max<int64_t>(0, budget - number_in(node, "promised_bytes"));
  return fmt::format("{} of {}", bytes_text(static_cast<uint64_t>(free)), bytes_or_dash(budget));
}

std::string speed_text(const Json& node) {
  const int64_t speed = number_in(node, "read_bytes_s");
  return speed > 0 ? fmt::format("{:.0f} GB/s", static_cast<double>(speed) / 1e9) : "-";
}

std::string notes_text(const Json& node) {
  std::string notes;
  const auto add = [&](bool is_there, std::string_view note) {
    if (is_there) notes += (notes.empty() ? "" : ", ") + std::string(note);
  };
  add(flag_in(node, "is_self"), "this node");
  add(flag_in(node, "is_coordinator"), "coordinator");
  add(flag_in(node, "is_spare"), "spare");
  const double power_w = real_in(node, "power_w");
  add(power_w > 0, fmt::format("{:.0f} W", power_w));
  const std::string note = text_in(node, "note");
  add(!note.empty(), note);
  return notes;
}

// With the beginning of its id where another node has the same name, as --nodes takes it.
std::string node_label(const Json& node, std::span<const Json> nodes) {
  const std::string name = text_in(node, "name");
  const auto has_name = [&](const Json& one) { return text_in(one, "name") == name; };
  if (name.empty() || std::count_if(nodes.begin(), nodes.end(), has_name) < 2) {
    return name_of_node(node);
  }
  return fmt::format("{} ({})", name, text_in(node, "id").substr(0, 8));
}

std::string node_line(const Json& node, const std::string& name) {
  std::string line = fmt::format("  {:<20} {:<8} {:>22} {:>9}  {}", name, text_in(node, "state"),
                                 memory_text(node), speed_text(node), notes_text(node));
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

// Nodes in the order of their first rank, each with its ranks and their total bytes.
struct PlacedNode {
  std::string name;
  std::vector<int64_t> ranks;
  int64_t bytes = 0;
};

std::vector<PlacedNode> placed_nodes(const Json& model, std::optional<int64_t> group = {}) {
  std::vector<PlacedNode> nodes;
  for (const Json& rank : list_in(model, "placement")) {
    if (group && number_in(rank, "group") != *group) continue;
    const std::string name = text_in(rank, "node_name");
    auto node = std::find_if(nodes.begin(), nodes.end(),
                             [&](const PlacedNode& one) { return one.name == name; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), PlacedNode{name, {}, 0});
    node->ranks.push_back(number_in(rank, "rank"));
    node->bytes += number_in(rank, "bytes");
  }
  return nodes;
}

std::string placed_line(const PlacedNode& node) {
  std::string ranks;
  for (const int64_t rank : node.ranks) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  return fmt::format("{}: {} {}, {}", node.name, node.ranks.size() == 1 ? "rank" : "ranks", ranks,
                     bytes_text(static_cast<uint64_t>(node.bytes)));
}

}  // namespace

std::vector<std::string> cluster_lines(const Json& status) {
  const std::string cluster = text_in(status, "cluster");
  if (cluster.empty()) return {};
  const auto nodes = list_in(status, "nodes");
  std::vector<std::string> lines;
  lines.push_back(fmt::format("cluster {}, {}", cluster, counted(nodes.size(), "node")));
  lines.emplace_back("  node                 state            free for models     reads");
  for (const Json& node : nodes) lines.push_back(node_line(node, node_label(node, nodes)));
  const std::string problem = text_in(status, "beacon_problem");
  if (!problem.empty()) lines.push_back("  " + problem);
  for (const Json& pin : list_in(status, "pins")) lines.push_back(pin_text(pin));
  return lines;
}

std::string name_of_node(const Json& node) {
  const std::string name = text_in(node, "name");
  return name.empty() ? text_in(node, "id").substr(0, kShortIdDigits) : name;
}

std::string pin_text(const Json& pin) {
  return fmt::format("{} ({}) asks to join. If it is yours, type there: {}", text_in(pin, "name"),
                     text_in(pin, "address"), text_in(pin, "pin"));
}

std::string state_text(const Json& model) {
  const std::string phase = text_in(model, "phase");
  return phase.empty() || phase == "ready" ? text_in(model, "state") : phase;
}

std::vector<std::string> placement_lines(const Json& model) {
  std::vector<std::string> lines;
  const std::string sentence = text_in(model, "sentence");
  if (!sentence.empty()) lines.push_back(sentence);
  const auto groups = list_in(model, "groups");
  if (groups.size() < 2) {
    for (const PlacedNode& node : placed_nodes(model)) lines.push_back(placed_line(node));
    return lines;
  }
  for (const Json& group : groups) {
    const int64_t number = number_in(group, "group");
    lines.push_back(
        fmt::format("group {}: {}, {} running", number, text_in(group, "phase"),
                    counted(static_cast<uint64_t>(number_in(group, "running")), "request")));
    for (const PlacedNode& node : placed_nodes(model, number)) {
      lines.push_back("  " + placed_line(node));
    }
  }
  return lines;
}

std::string disk_text(const Json& model) {
  const Json* disk = find(model, "disk");
  if (disk == nullptr || !disk->is_object()) return "";
  const auto size = static_cast<uint64_t>(number_in(*disk, "size_bytes"));
  const auto whole = static_cast<uint64_t>(number_in(*disk, "whole_bytes"));
  return size < whole ? fmt::format("{} of {} on this disk", bytes_text(size), bytes_text(whole))
                      : fmt::format("{} on this disk, whole", bytes_text(size));
}

std::string placed_on(const Json& model) {
  const auto nodes = placed_nodes(model);
  std::string names;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i > 0) names += i + 1 == nodes.size() ? " and " : ", ";
    names += nodes[i].name;
  }
  return names;
}

}  // namespace lockstep

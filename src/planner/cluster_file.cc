#include "planner/cluster_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "json/json.h"
#include "planner/profiles/profiles.h"
#include "transport/topology.h"

namespace lockstep {
namespace {

constexpr size_t kNameBytesMax = 100;

Error bad_cluster_file(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status check_keys(const JsonObject& json) {
  constexpr std::string_view kKnown[] = {"about", "machines", "link", "links", "topology"};
  for (const auto& entry : json) {
    const std::string_view key = entry.key();
    if (std::find(std::begin(kKnown), std::end(kKnown), key) == std::end(kKnown)) {
      return bad_cluster_file(fmt::format(
          "a cluster has no \"{}\"; it has \"machines\", \"link\", \"links\" and \"topology\"",
          key));
    }
  }
  return Ok{};
}

Status add_machines(const Json& json, size_t index, std::vector<Machine>& machines) {
  const std::string what = fmt::format("machine {} of the cluster", index + 1);
  if (!json.is_object()) return bad_cluster_file(what + " must be an object");
  const auto profile = TRY(get_string(json, "profile"));
  const auto name = TRY(get_string(json, "name"));
  const int64_t count = TRY(get_int(json, "count")).value_or(1);
  Machine base;
  if (profile) base = TRY(machine_profile(*profile));
  base = TRY(read_machine(json.get_object(), base, what));
  base.name = name.value_or(profile.value_or(fmt::format("machine-{}", index + 1)));
  if (base.name.empty() || base.name.size() > kNameBytesMax) {
    return bad_cluster_file(
        fmt::format("the name of {} must have 1 to {} bytes", what, kNameBytesMax));
  }
  const auto room = static_cast<int64_t>(kPlannedMachinesMax - machines.size());
  if (count < 1 || count > room) {
    return bad_cluster_file(
        fmt::format("\"count\" of {} must be from 1 to {}; a cluster has at most {} machines", what,
                    room, kPlannedMachinesMax));
  }
  for (int64_t i = 1; i <= count; ++i) {
    Machine machine = base;
    if (count > 1) machine.name += fmt::format("-{}", i);
    machines.push_back(std::move(machine));
  }
  return Ok{};
}

Result<std::vector<Machine>> read_machines(const Json& json) {
  const Json* list = find(json, "machines");
  if (!list || !list->is_array() || list->get_array().empty()) {
    return bad_cluster_file("a cluster needs \"machines\", a list of at least one object");
  }
  std::vector<Machine> machines;
  for (const Json& entry : list->get_array()) {
    if (machines.size() == kPlannedMachinesMax) {
      return bad_cluster_file(
          fmt::format("a cluster has at most {} machines", kPlannedMachinesMax));
    }
    TRY(add_machines(entry, static_cast<size_t>(&entry - list->get_array().data()), machines));
  }
  for (size_t i = 0; i < machines.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (machines[i].name == machines[j].name) {
        return bad_cluster_file(fmt::format(
            "two machines of the cluster are called {}; give each a \"name\"", machines[i].name));
      }
    }
  }
  return machines;
}

// A profile's name, or an object of figures, with or without a profile.
Result<LinkFigures> read_any_link(const Json& json, std::string_view what) {
  if (json.is_string()) return link_profile(std::string_view(json.get_string()));
  if (!json.is_object())
    return bad_cluster_file(fmt::format("{} must be a profile's name or an object", what));
  LinkFigures link;
  if (const auto profile = TRY(get_string(json, "profile"))) link = TRY(link_profile(*profile));
  return read_link(json.get_object(), link, what);
}

class LinkReader {
 public:
  explicit LinkReader(const std::vector<Machine>& machines)
      : machines_(machines), direct_(machines.size() * machines.size()) {}

  Result<LinkTable> read(const Json& json) {
    const auto name = TRY(get_string(json, "topology"));
    const Topology topology = TRY(parse_topology(name.value_or("mesh")));
    if (const Json* link = find(json, "link")) {
      TRY(join_all(TRY(read_any_link(*link, "\"link\"")), topology));
    } else if (name) {
      return bad_cluster_file(
          "\"topology\" says which machines \"link\" joins, so \"link\" must be there");
    }
    if (const Json* links = find(json, "links")) TRY(read_pairs(*links));
    LinkTable table(machines_.size(), std::move(direct_));
    for (size_t i = 1; i < machines_.size(); ++i) {
      if (!table.between(0, i)) {
        return bad_cluster_file(
            fmt::format("there is no link from {} to {}; \"link\" joins all machines",
                        machines_[0].name, machines_[i].name));
      }
    }
    return table;
  }

 private:
  void join(size_t a, size_t b, const LinkFigures& link) {
    direct_[a * machines_.size() + b] = direct_[b * machines_.size() + a] = link;
  }

  Status join_all(const LinkFigures& link, Topology topology) {
    const auto size = static_cast<int>(machines_.size());
    for (int a = 0; a < size; ++a) {
      for (int b = 0; b < a; ++b) {
        if (is_joined(topology, size, a, b)) {
          join(static_cast<size_t>(a), static_cast<size_t>(b), link);
        }
      }
    }
    return Ok{};
  }

  Result<size_t> machine_of(const Json& json, std::string_view what) const {
    for (size_t i = 0; i < machines_.size() && json.is_string(); ++i) {
      if (std::string_view(json.get_string()) == machines_[i].name) return i;
    }
    return bad_cluster_file(fmt::format(
        "\"between\" of {} must name machines of the cluster, not {}", what, dump_json(json)));
  }

  Status read_pairs(const Json& json) {
    constexpr size_t kPairsMax = kPlannedMachinesMax * kPlannedMachinesMax;
    if (!json.is_array() || json.get_array().size() > kPairsMax) {
      return bad_cluster_file("\"links\" of the cluster must be a list of objects");
    }
    for (const Json& entry : json.get_array()) {
      const std::string what = fmt::format("link {}", &entry - json.get_array().data() + 1);
      const Json* between = find(entry, "between");
      if (!between || !between->is_array() || between->get_array().size() != 2) {
        return bad_cluster_file(
            fmt::format("{} of the cluster needs \"between\": [name, name]", what));
      }
      const size_t a = TRY(machine_of(between->get_array()[0], what));
      const size_t b = TRY(machine_of(between->get_array()[1], what));
      if (a == b)
        return bad_cluster_file(fmt::format("{} joins {} with itself", what, machines_[a].name));
      join(a, b, TRY(read_any_link(entry, what)));
    }
    return Ok{};
  }

  const std::vector<Machine>& machines_;
  std::vector<std::optional<LinkFigures>> direct_;
};

}  // namespace

Result<ClusterFacts> parse_cluster(std::string_view text) {
  const Json json = TRY(parse_json(text, DuplicateKeys::kRefuse));
  if (!json.is_object()) return bad_cluster_file("a cluster file must hold a JSON object");
  TRY(check_keys(json.get_object()));
  std::vector<Machine> machines = TRY(read_machines(json));
  LinkTable links = TRY(LinkReader(machines).read(json));
  return ClusterFacts{std::move(machines), std::move(links)};
}

}  // namespace lockstep

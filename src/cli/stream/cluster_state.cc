#include "cli/stream/cluster_state.h"

#include <utility>

#include "cli/client/node_client.h"

namespace lockstep {

Result<ClusterState::Change> ClusterState::take(const ServerEvent& event) {
  auto parsed = parse_json(event.data);
  if (!parsed.ok() || !parsed.value().is_object()) {
    return Error{ErrorCode::kCorrupt, "an event of the node is not a JSON object"};
  }
  Json data = std::move(parsed.value());
  if (event.name == "snapshot") {
    happened_.clear();
    for (const Json& happening : list_in(data, "happened")) add_happening(happening);
    status_ = std::move(data);
    has_status_ = true;
    return Change::kStatus;
  }
  if (event.name == "change") {
    JsonObject& members = status_.get_object();
    for (auto& [name, value] : data.get_object()) {
      if (value.is_null()) {
        members.erase(name);
      } else {
        members[name] = std::move(value);
      }
    }
    return Change::kStatus;
  }
  if (event.name == "meters") {
    meters_ = std::move(data);
    return Change::kMeters;
  }
  if (event.name != "happened") return Change::kNothing;
  add_happening(data);
  return Change::kHappened;
}

void ClusterState::add_happening(const Json& happening) {
  happened_.push_back(happening);
  if (happened_.size() > kHappeningsMax) happened_.pop_front();
}

}  // namespace lockstep

#include "node/wire/data_paths.h"

#include <algorithm>

#include "json/json.h"
#include "node/wire/message_fields.h"

namespace lockstep {
namespace {

bool has(std::span<const std::string> hosts, const std::string& host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

Result<DataPaths> paths_of(const Json& json) {
  DataPaths paths;
  paths.note = TRY(need_string(json, "note"));
  const auto list = TRY(need_array(json, "paths"));
  if (list.size() > kDataAddressesMax) return corrupt_message("paths");
  for (const Json& path : list) {
    DataPath& one = paths.paths.emplace_back();
    one.own = TRY(need_string(path, "own"));
    one.peer = TRY(need_string(path, "peer"));
  }
  return paths;
}

}  // namespace

const DataPath* best_path(const DataPaths& paths, std::span<const std::string> own_rdma,
                          std::span<const std::string> peer_rdma) {
  if (paths.paths.empty()) return nullptr;
  for (const DataPath& path : paths.paths) {
    if (has(own_rdma, path.own) && has(peer_rdma, path.peer)) return &path;
  }
  return &paths.paths.front();
}

std::string encode_data_paths(std::span<const DataPaths> ranks) {
  JsonArray array;
  for (const DataPaths& rank : ranks) {
    JsonArray paths;
    for (const DataPath& path : rank.paths) {
      paths.push_back(JsonObject{{"own", path.own}, {"peer", path.peer}});
    }
    array.push_back(JsonObject{{"paths", std::move(paths)}, {"note", rank.note}});
  }
  return dump_json(array);
}

Result<std::vector<DataPaths>> decode_data_paths(std::string_view text) {
  const Json json = TRY(parse_json(text));
  if (!json.is_array()) return corrupt_message("paths");
  std::vector<DataPaths> ranks;
  for (const Json& rank : json.get_array()) ranks.push_back(TRY(paths_of(rank)));
  return ranks;
}

}  // namespace lockstep

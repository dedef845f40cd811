// The contents of a node's disk: the models of the hub's cache, of the read-only stores and of the
// copies of other nodes' folders, and the space that is left. Also its form on the wire between
// nodes. Reading takes as long as the disk does; the rest is pure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/files/settings.h"
#include "json/json.h"

namespace lockstep {

inline constexpr size_t kDiskModelsMax = 512;             // in a report; the rest is counted
inline constexpr size_t kDiskReportBytesMax = 768 << 10;  // on the wire
inline constexpr size_t kDiskTextBytesMax = 4096;         // of a name or a path from another node

struct DiskModel {
  std::string name;  // "org/name", with "@revision" unless that is main
  uint64_t bytes = 0;
  uint64_t whole_bytes = 0;
  bool is_complete = false;
  bool is_share = false;      // parts of the weights, as this node's ranks need them
  bool is_removable = false;  // in a folder that this node writes to
  std::string path;
};

struct DiskReport {
  std::optional<uint64_t> free_bytes;  // where downloads go; nullopt: unknown
  std::vector<DiskModel> models;
  uint64_t left_out = 0;  // models beyond kDiskModelsMax
};

// `home`: the node's own folder, with its copies.
DiskReport read_disk(const HubSettings& settings, const std::filesystem::path& home);

// {"free_bytes", "models": [{"name", "bytes", "whole_bytes", "complete", "copies", "removable",
// "path"}], "left_out"}: also the form of GET /cluster/disk.
JsonObject disk_json(const DiskReport& report);
// kCorrupt for anything that disk_json() does not write.
Result<DiskReport> read_disk_json(const Json& json);

}  // namespace lockstep

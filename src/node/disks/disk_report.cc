#include "node/disks/disk_report.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/files/free_space.h"
#include "hub/files/model_id.h"
#include "hub/model_cache.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWholeCopy = "whole";
constexpr std::string_view kShareCopy = "share";

std::string name_of(const CachedModel& model) {
  const auto& names = model.revisions;
  if (std::find(names.begin(), names.end(), kDefaultRevision) != names.end()) {
    return model.repository;
  }
  return model.repository + "@" + (names.empty() ? model.commit : names.front());
}

void add_models(const fs::path& cache, bool is_removable, DiskReport& report) {
  for (const CachedModel& model : list_models(cache)) {
    if (report.models.size() == kDiskModelsMax) {
      ++report.left_out;
      continue;
    }
    std::error_code error;
    const auto id = parse_model_id(model.repository);
    const bool has_parts =
        id.ok() && fs::is_directory(ModelPaths(cache, id.value()).parts(model.commit), error);
    report.models.push_back({.name = name_of(model),
                             .bytes = model.size_bytes,
                             .whole_bytes = model.whole_bytes,
                             .is_complete = model.is_whole,
                             .is_share = !model.is_whole && has_parts,
                             .is_removable = is_removable,
                             .path = model.path.string()});
  }
}

JsonObject model_json(const DiskModel& model) {
  return {{"name", model.name},
          {"bytes", model.bytes},
          {"whole_bytes", model.whole_bytes},
          {"complete", model.is_complete},
          {"copies", model.is_share ? kShareCopy : kWholeCopy},
          {"removable", model.is_removable},
          {"path", model.path}};
}

Error corrupt_report() {
  return {ErrorCode::kCorrupt, "the node sent an invalid list of its models"};
}

Result<std::string> report_text(const Json& json, std::string_view key) {
  const auto text = get_string(json, key);
  if (text.ok() && text.value() && text.value()->size() <= kDiskTextBytesMax) return *text.value();
  return corrupt_report();
}

Result<uint64_t> bytes_in(const Json& json, std::string_view key) {
  const Json* value = find(json, key);
  const auto bytes = value == nullptr ? std::nullopt : number_of<uint64_t>(*value);
  if (bytes) return *bytes;
  return corrupt_report();
}

Result<bool> truth_in(const Json& json, std::string_view key) {
  const auto truth = get_bool(json, key);
  if (truth.ok() && truth.value()) return *truth.value();
  return corrupt_report();
}

Result<DiskModel> read_model(const Json& json) {
  DiskModel model;
  model.name = TRY(report_text(json, "name"));
  model.bytes = TRY(bytes_in(json, "bytes"));
  model.whole_bytes = TRY(bytes_in(json, "whole_bytes"));
  model.is_complete = TRY(truth_in(json, "complete"));
  model.is_removable = TRY(truth_in(json, "removable"));
  model.path = TRY(report_text(json, "path"));
  const std::string copies = TRY(report_text(json, "copies"));
  if (copies != kWholeCopy && copies != kShareCopy) return corrupt_report();
  model.is_share = copies == kShareCopy;
  return model;
}

}  // namespace

DiskReport read_disk(const HubSettings& settings, const fs::path& home) {
  DiskReport report{.free_bytes = free_bytes_at(settings.cache), .models = {}};
  add_models(settings.cache, true, report);
  add_models(home / "models", true, report);
  for (const fs::path& store : settings.stores) add_models(store, false, report);
  return report;
}

JsonObject disk_json(const DiskReport& report) {
  JsonArray models;
  uint64_t left_out = report.left_out;
  size_t bytes = 0;
  for (const DiskModel& model : report.models) {
    JsonObject json = model_json(model);
    bytes += dump_json(json).size();
    if (bytes > kDiskReportBytesMax) {
      ++left_out;
    } else {
      models.push_back(std::move(json));
    }
  }
  JsonObject json{{"models", std::move(models)}};
  if (report.free_bytes) json["free_bytes"] = *report.free_bytes;
  if (left_out > 0) json["left_out"] = left_out;
  return json;
}

Result<DiskReport> read_disk_json(const Json& json) {
  DiskReport report;
  const Json* models = find(json, "models");
  if (models == nullptr || !models->is_array() || models->get_array().size() > kDiskModelsMax) {
    return corrupt_report();
  }
  for (const Json& model : models->get_array()) report.models.push_back(TRY(read_model(model)));
  if (find(json, "free_bytes") != nullptr) report.free_bytes = TRY(bytes_in(json, "free_bytes"));
  if (find(json, "left_out") != nullptr) report.left_out = TRY(bytes_in(json, "left_out"));
  return report;
}

}  // namespace lockstep

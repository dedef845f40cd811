#include "hub/model_download.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/bytes_text.h"
#include "hub/files/range_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = uint64_t{16} << 20;  // for journals, links and more

uint64_t missing_bytes(const SpaceNeed& need, const PieceStore& store, const HubFile& file) {
  const PieceCut cut = store.cut(file);
  const std::vector<bool> there =
      RangeFile::pieces_in(PieceStore::partial_path(store.blob(file)), cut);
  uint64_t bytes = 0;
  for (uint32_t piece = 0; piece < cut.count(); ++piece) {
    const bool is_wanted = !need.wants || need.wants(file, piece);
    if (is_wanted && !there[piece]) bytes += cut.range(piece).size();
  }
  return bytes;
}

}  // namespace

std::vector<HubFile> contents_of(const ModelFiles& files) {
  std::vector<HubFile> contents;
  std::set<std::string> seen;
  for (const HubFile& file : files.files) {
    if (seen.insert(file.hash).second) contents.push_back(file);
  }
  std::stable_sort(contents.begin(), contents.end(),
                   [](const HubFile& a, const HubFile& b) { return a.size < b.size; });
  return contents;
}

bool is_weights_file(const HubFile& file) {
  return file.name.ends_with(".safetensors") || file.name.ends_with(".gguf");
}

ModelFiles small_files(const ModelFiles& files) {
  ModelFiles small{.commit = files.commit, .files = {}};
  bool has_config = false;
  for (const HubFile& file : files.files) {
    if (is_weights_file(file)) continue;
    small.files.push_back(file);
    has_config = has_config || file.name == "config.json";
  }
  if (!has_config) small.files.clear();
  return small;
}

void add_earlier_files(const ModelPaths& paths, ModelFiles& files) {
  const auto earlier = read_list(paths, files.commit);
  if (!earlier.ok()) return;
  const auto missing = missing_files(paths, earlier.value());
  for (const HubFile& file : earlier.value().files) {
    const auto is_same = [&](const HubFile& other) { return other.name == file.name; };
    const bool is_missing = std::any_of(missing.begin(), missing.end(), [&](const HubFile* other) {
      return other->name == file.name;
    });
    if (!is_missing && std::none_of(files.files.begin(), files.files.end(), is_same)) {
      files.files.push_back(file);
    }
  }
}

Status check_space(const SpaceNeed& need, const PieceStore& store,
                   const std::vector<HubFile>& contents) {
  uint64_t needed = 0, total = 0;
  for (const HubFile& file : contents) {
    total += file.size;
    if (!store.is_whole(file)) needed += missing_bytes(need, store, file);
  }
  std::error_code error;
  const fs::space_info space = fs::space(need.folder, error);
  if (error || needed == 0 || needed + kSpareBytes <= space.available) return Ok{};
  return Error{ErrorCode::kExhausted,
               fmt::format("{} needs {} more on the disk ({} bytes of its {}), and {} has {} free "
                           "({} bytes); free {}, or {}",
                           need.model, bytes_text(needed), needed, bytes_text(total),
                           need.folder.parent_path().parent_path().string(),
                           bytes_text(space.available), space.available,
                           bytes_text(needed + kSpareBytes - space.available), need.way_out)};
}

}  // namespace lockstep

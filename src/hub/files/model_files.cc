#include "hub/files/model_files.h"

#include <fmt/core.h>

#include <unordered_set>
#include <utility>

#include "base/hex.h"
#include "base/text_hash.h"
#include "hub/files/model_id.h"
#include "json/json.h"

namespace lockstep {
namespace {

constexpr int64_t kFileBytesMax = int64_t{1} << 46;  // kModelFilesMax of them do not overflow

Error corrupt_list(std::string_view what) {
  return {ErrorCode::kCorrupt, fmt::format("the hub's list of files cannot be used: {}", what)};
}

Result<uint64_t> read_size(const Json& object, std::string_view name) {
  const auto size = get_int(object, "size");
  if (!size.ok() || !size.value() || *size.value() < 0 || *size.value() > kFileBytesMax) {
    return corrupt_list(fmt::format("it does not say how long {} is", name));
  }
  return static_cast<uint64_t>(*size.value());
}

// A large file has "lfs" with its SHA-256; a small one has only its git hash.
Result<HubFile> read_file(const Json& sibling) {
  HubFile file;
  const auto name = get_string(sibling, "rfilename");
  if (!name.ok() || !name.value()) return corrupt_list("a file has no name");
  file.name = *name.value();
  if (!is_safe_file_name(file.name)) {
    return corrupt_list(fmt::format("the file name {:.100} points outside the model's folder",
                                    dump_json(Json(file.name))));
  }
  file.size = TRY(read_size(sibling, file.name));
  const Json* lfs = find(sibling, "lfs");
  const bool is_large = lfs && lfs->is_object();
  if (is_large && TRY(read_size(*lfs, file.name)) != file.size) {
    return corrupt_list(fmt::format("it gives two lengths for {}", file.name));
  }
  const auto hash = is_large ? get_string(*lfs, "sha256") : get_string(sibling, "blobId");
  file.hash_kind = is_large ? HashKind::kSha256 : HashKind::kSha1;
  if (!hash.ok() || !hash.value() ||
      !is_hex(*hash.value(), is_large ? kSha256Digits : kSha1Digits)) {
    return corrupt_list(fmt::format("{} has no {}", file.name, is_large ? "SHA-256" : "hash"));
  }
  file.hash = *hash.value();
  return file;
}

}  // namespace

uint64_t ModelFiles::total_bytes() const {
  uint64_t bytes = 0;
  for (const HubFile& file : files) bytes += file.size;
  return bytes;
}

Result<ModelFiles> parse_model_files(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.ok()) return corrupt_list(json.error().message);
  ModelFiles model;
  const auto commit = get_string(json.value(), "sha");
  if (!commit.ok() || !commit.value() || !is_hex(*commit.value(), kSha1Digits)) {
    return corrupt_list("it names no commit");
  }
  model.commit = *commit.value();
  const Json* siblings = find(json.value(), "siblings");
  if (!siblings || !siblings->is_array()) return corrupt_list("there are no \"siblings\"");
  if (siblings->get_array().size() > kModelFilesMax) {
    return corrupt_list(fmt::format("it has more than {} files", kModelFilesMax));
  }
  std::unordered_set<std::string, TextHash> names;
  for (const Json& sibling : siblings->get_array()) {
    model.files.push_back(TRY(read_file(sibling)));
    if (!names.insert(model.files.back().name).second) {
      return corrupt_list(fmt::format("it names {} twice", model.files.back().name));
    }
  }
  return model;
}

std::string dump_model_files(const ModelFiles& files) {
  JsonArray siblings;
  for (const HubFile& file : files.files) {
    JsonObject entry{{"rfilename", file.name}, {"size", file.size}};
    if (file.hash_kind == HashKind::kSha256) {
      entry["lfs"] = JsonObject{{"sha256", file.hash}, {"size", file.size}};
    } else {
      entry["blobId"] = file.hash;
    }
    siblings.push_back(std::move(entry));
  }
  return dump_json(JsonObject{{"sha", files.commit}, {"siblings", std::move(siblings)}});
}

Hasher hasher_for(const HubFile& file) {
  Hasher hasher(file.hash_kind);
  if (file.hash_kind == HashKind::kSha1) {
    hasher.add(fmt::format("blob {}", file.size));
    hasher.add(std::string_view("\0", 1));
  }
  return hasher;
}

}  // namespace lockstep

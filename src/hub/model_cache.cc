#include "hub/model_cache.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/files/mapped_file.h"
#include "base/hex.h"
#include "hub/files/piece_store.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderStart = "models--";

std::string folder_name_of(const ModelId& id) {
  std::string name = std::string(kFolderStart) + id.repository;
  name.replace(name.find('/'), 1, "--");
  return name;
}

// Links to the blob by a relative path, so that the cache can be moved. A hard link if the file
// system has no symbolic links (exFAT, some network stores).
Status link_blob(const fs::path& blob, const fs::path& link) {
  std::error_code error;
  fs::create_directories(link.parent_path(), error);
  if (error) return write_error(link.parent_path(), error.value());
  const fs::path target = blob.lexically_relative(link.parent_path());
  if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return Ok{};
  fs::remove(link, error);
  fs::create_symlink(target, link, error);
  if (error && error != std::errc::no_space_on_device) fs::create_hard_link(blob, link, error);
  return error ? Status(write_error(link, error.value())) : Status(Ok{});
}

bool has_file(const fs::path& path, uint64_t size) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == size && !error;
}

}  // namespace

ModelPaths::ModelPaths(const fs::path& cache, const ModelId& id)
    : folder(cache / folder_name_of(id)) {}

fs::path ModelPaths::list(std::string_view commit) const {
  return folder / "lockstep" / fmt::format("{}.json", commit);
}

fs::path ModelPaths::parts(std::string_view commit) const {
  return folder / "lockstep" / fmt::format("{}.parts", commit);
}

Result<ModelLock> ModelLock::take(const fs::path& cache, const ModelId& id) {
  const fs::path path = cache / ".locks" / (folder_name_of(id) + ".lock");
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return write_error(path.parent_path(), error.value());
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open()) return write_error(path, errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return ModelLock(std::move(fd));
  if (errno != EWOULDBLOCK) return write_error(path, errno);
  return Error{
      ErrorCode::kExhausted,
      fmt::format("another process is downloading or removing {} in {}; try again when it is done",
                  id.repository, cache.string())};
}

std::optional<std::string> commit_on_disk(const ModelPaths& paths, std::string_view revision) {
  if (is_hex(revision, kSha1Digits)) return std::string(revision);
  const auto text = read_small_file(paths.reference(revision), kSha1Digits + 2);
  if (!text.ok()) return std::nullopt;
  const std::string commit = text.value().substr(0, kSha1Digits);
  return is_hex(commit, kSha1Digits) ? std::optional(commit) : std::nullopt;
}

Result<ModelFiles> read_list(const ModelPaths& paths, std::string_view commit) {
  return parse_model_files(TRY(read_small_file(paths.list(commit), kModelFilesTextMax)));
}

std::vector<const HubFile*> missing_files(const ModelPaths& paths, const ModelFiles& files) {
  std::vector<const HubFile*> missing;
  for (const HubFile& file : files.files) {
    if (!has_file(paths.snapshot(files.commit) / file.name, file.size)) missing.push_back(&file);
  }
  return missing;
}

Status publish(const ModelPaths& paths, const ModelFiles& files, std::string_view revision) {
  for (const HubFile& file : files.files) {
    TRY(link_blob(paths.blobs() / file.hash, paths.snapshot(files.commit) / file.name));
  }
  if (is_hex(revision, kSha1Digits)) return Ok{};
  const fs::path reference = paths.reference(revision);
  std::error_code error;
  fs::create_directories(reference.parent_path(), error);
  if (error) return write_error(reference.parent_path(), error.value());
  return write_file_atomically(reference, files.commit);
}

Status publish_parts(const ModelPaths& paths, const ModelFiles& files) {
  for (const HubFile& file : files.files) {
    fs::path blob = paths.blobs() / file.hash;
    if (!has_file(blob, file.size)) blob = PieceStore::partial_path(blob);
    TRY(link_blob(blob, paths.parts(files.commit) / file.name));
  }
  return Ok{};
}

Result<fs::path> find_parts(const ModelPaths& paths, std::string_view revision) {
  std::error_code error;
  const auto commit = commit_on_disk(paths, revision);
  if (commit && fs::is_directory(paths.parts(*commit), error)) return paths.parts(*commit);
  return Error{ErrorCode::kNotFound, "no part of its files is on this node yet"};
}

std::string repository_of_path(const fs::path& path) {
  const fs::path normal =
      (path / "").lexically_normal().parent_path();  // without a slash at the end
  const fs::path snapshots = normal.parent_path();
  const std::string folder = snapshots.parent_path().filename().string();
  if (snapshots.filename() != "snapshots" || !folder.starts_with(kFolderStart)) return "";
  std::string name = folder.substr(kFolderStart.size());
  const size_t separator = name.find("--");
  if (separator == name.npos) return "";
  return name.replace(separator, 2, "/");
}

}  // namespace lockstep

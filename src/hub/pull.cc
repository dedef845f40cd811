#include "hub/pull.h"

#include <fmt/core.h>

#include <memory>
#include <system_error>

#include "hub/files/piece_store.h"
#include "hub/http/hub_client.h"
#include "hub/model_cache.h"
#include "hub/model_download.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// Deletes whole files that fail their check.
Result<size_t> discard_damaged(const PullOptions& options, PieceStore& store,
                               const std::vector<HubFile>& contents) {
  size_t damaged = 0;
  for (const HubFile& file : contents) {
    if (options.cancelled && *options.cancelled) {
      return Error{ErrorCode::kCancelled, "the check was stopped"};
    }
    if (!store.is_whole(file) || TRY(store.is_hash_right(file))) continue;
    TRY(store.discard_whole(file));
    ++damaged;
  }
  return damaged;
}

Result<ModelFiles> list_offline(const ModelPaths& paths, const ModelId& id) {
  const auto commit = commit_on_disk(paths, id.revision_or_default());
  if (commit) {
    auto files = read_list(paths, *commit);
    if (files.ok() && missing_files(paths, files.value()).empty()) return files;
  }
  return Error{
      ErrorCode::kNotFound,
      fmt::format("{} is incomplete on this disk, and HF_HUB_OFFLINE forbids asking the hub",
                  id.text())};
}

Result<PullReport> pull_offline(const PullOptions& options) {
  const ModelPaths paths(options.settings.cache, options.id);
  PullReport report;
  report.path = TRY(resolve_model(options.id.text(), options.settings));
  const auto files = list_offline(paths, options.id);
  if (!files.ok()) return report;  // downloaded by other tools, or in a store: used as it is
  report.commit = files.value().commit;
  report.files = files.value().files.size();
  report.size_bytes = files.value().total_bytes();
  if (!options.verifies) return report;
  PieceStore store(paths.blobs(), options.piece_bytes);
  for (const HubFile& file : contents_of(files.value())) {
    if (TRY(store.is_hash_right(file))) continue;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{} of {} is damaged on this disk; pull it without HF_HUB_OFFLINE",
                             file.name, options.id.text())};
  }
  return report;
}

}  // namespace

Result<PullReport> pull_model(const PullOptions& options) {
  if (options.settings.is_offline) return pull_offline(options);
  const ModelPaths paths(options.settings.cache, options.id);
  std::atomic<uint64_t> received{0};
  const HubOptions hub{.settings = options.settings,
                       .retries = options.retries,
                       .cancelled = options.cancelled,
                       .received = &received};
  const ModelFiles listed = TRY(fetch_model_files(hub, options.id));
  ModelFiles files = TRY(choose_files(listed, options.id, options.rules));
  std::error_code error;
  fs::create_directories(paths.blobs(), error);
  if (!error) fs::create_directories(paths.folder / "lockstep", error);
  if (error) return write_error(paths.folder, error.value());
  const ModelLock lock = TRY(ModelLock::take(options.settings.cache, options.id));
  add_earlier_files(paths, files);
  PieceStore store(paths.blobs(), options.piece_bytes);
  const std::vector<HubFile> contents = contents_of(files);
  PullReport report{.commit = files.commit, .files = files.files.size()};
  for (const HubFile& file : contents) report.size_bytes += file.size;
  if (options.verifies) report.repaired_files = TRY(discard_damaged(options, store, contents));
  const std::string model = options.id.text();
  TRY(check_space({.model = model, .folder = paths.blobs()}, store, contents));
  TRY(write_file_atomically(paths.list(files.commit), dump_model_files(files)));
  const auto make_source = [&]() -> std::unique_ptr<PieceSource> {
    return std::make_unique<HubSource>(hub, options.id, files.commit);
  };
  TRY(download(store, contents, make_source,
               {.connections = options.connections,
                .cancelled = options.cancelled,
                .on_progress = options.on_progress}));
  TRY(publish(paths, files, options.id.revision_or_default()));
  report.path = TRY(resolve_model(options.id.text(), options.settings));
  report.received_bytes = received.load();
  return report;
}

}  // namespace lockstep

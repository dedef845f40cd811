// Finds a MODEL of the command line on disk (model_cache.h).
#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "hub/model_cache.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

// The loadable .gguf files of a folder: of split ones the first.
std::vector<fs::path> gguf_files_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const size_t split = name.rfind("-of-");
    const bool is_later_part = split != name.npos && split >= 6 &&
                               name.substr(split - 6, 6) != "-00001" && name[split - 6] == '-';
    if (entry->path().extension() == ".gguf" && !is_later_part) found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

// The path to load in a model's folder.
Result<std::string> model_in(const fs::path& folder, const ModelId& id) {
  std::error_code error;
  if (!id.file.empty()) {
    if (fs::exists(folder / id.file, error)) return (folder / id.file).string();
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is not on this disk; `lockstep pull {}` downloads it", id.text(),
                             id.text())};
  }
  if (fs::exists(folder / "config.json", error)) return folder.string();
  const auto files = gguf_files_in(folder);
  if (files.empty()) return folder.string();  // the loader reports what is missing
  if (files.size() == 1) return files[0].string();
  std::string names;
  for (const fs::path& file : files) {
    names += fmt::format("{}{}/{}", names.empty() ? "" : ", ", id.repository,
                         file.lexically_relative(folder).string());
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} has several GGUF files on this disk, name one: {}", id.repository, names)};
}

// Nullopt if the cache has nothing of the model.
Result<std::optional<std::string>> find_in_cache(const fs::path& cache, const ModelId& id) {
  const ModelPaths paths(cache, id);
  const auto commit = commit_on_disk(paths, id.revision_or_default());
  std::error_code error;
  if (!commit || !fs::is_directory(paths.snapshot(*commit), error)) {
    if (!fs::is_directory(paths.folder / "lockstep", error)) return std::optional<std::string>();
    return Error{ErrorCode::kNotFound,
                 fmt::format("{} is incomplete on this disk; `lockstep pull {}` fetches the rest",
                             id.text(), id.text())};
  }
  const auto files = read_list(paths, *commit);
  const size_t missing = files.ok() ? missing_files(paths, files.value()).size() : 0;
  if (missing == 0) return std::optional(TRY(model_in(paths.snapshot(*commit), id)));
  return Error{
      ErrorCode::kNotFound,
      fmt::format("{} of the {} files of {} are not on this disk; `lockstep pull {}` fetches "
                  "the rest",
                  missing, files.value().files.size(), id.text(), id.text())};
}

}  // namespace

Result<std::string> resolve_model(const std::string& model, const HubSettings& settings) {
  std::error_code error;
  if (fs::exists(model, error)) return model;
  const auto parsed = parse_model_id(model);
  if (!parsed.ok()) return model;  // the loader reports the error
  const ModelId& id = parsed.value();
  std::vector<fs::path> caches{settings.cache};
  caches.insert(caches.end(), settings.stores.begin(), settings.stores.end());
  std::optional<Error> not_whole;
  for (const fs::path& cache : caches) {
    const fs::path plain = cache / id.repository;
    if (cache != settings.cache && id.revision.empty() && fs::is_directory(plain, error)) {
      return model_in(plain, id);
    }
    const auto found = find_in_cache(cache, id);
    if (found.ok() && found.value()) return *found.value();
    if (!found.ok() && !not_whole) not_whole = found.error();
  }
  if (not_whole) return *not_whole;
  return Error{ErrorCode::kNotFound,
               fmt::format("there is no folder or file {} and no model of that name on this disk; "
                           "`lockstep pull {}` downloads one from the hub",
                           model, model)};
}

}  // namespace lockstep

// `lockstep list` and `lockstep remove`: the models on this machine's disk.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "hub/model_cache.h"

namespace lockstep {
namespace {

constexpr size_t kShortCommit = 8;

struct ListFlags {
  bool json = false;
};

std::string revision_text(const CachedModel& model) {
  if (model.revisions.empty()) return model.commit.substr(0, kShortCommit);
  return fmt::format("{}", fmt::join(model.revisions, ", "));
}

std::string cached_state_text(const CachedModel& model) {
  if (model.is_whole) return "whole";
  return fmt::format("{} of {}", bytes_text(model.size_bytes), bytes_text(model.whole_bytes));
}

Json cached_json(const CachedModel& model) {
  return JsonObject{{"model", model.repository},
                    {"commit", model.commit},
                    {"revisions", JsonArray(model.revisions.begin(), model.revisions.end())},
                    {"size_bytes", model.size_bytes},
                    {"whole_bytes", model.whole_bytes},
                    {"files", model.files},
                    {"is_whole", model.is_whole},
                    {"path", model.path.string()}};
}

int list(const ListFlags& flags) {
  const auto settings = hub_settings_from_environment();
  if (!settings.ok()) return fail(settings.error());
  std::vector<CachedModel> models = list_models(settings.value().cache);
  for (const auto& store : settings.value().stores) {
    for (CachedModel& model : list_models(store)) models.push_back(std::move(model));
  }
  if (flags.json) {
    JsonArray all;
    for (const CachedModel& model : models) all.push_back(cached_json(model));
    print_json(all);
    return 0;
  }
  size_t width = 5;
  for (const CachedModel& model : models) width = std::max(width, model.repository.size());
  if (models.empty()) {
    fmt::print(stderr, "There are no models in {}; `lockstep pull MODEL` downloads one.\n",
               settings.value().cache.string());
    return 0;
  }
  print_line(
      fmt::format("{:<{}}  {:<10}  {:>10}  {}", "MODEL", width, "REVISION", "SIZE", "STATE"));
  for (const CachedModel& model : models) {
    print_line(fmt::format("{:<{}}  {:<10}  {:>10}  {}", model.repository, width,
                           revision_text(model), bytes_text(model.whole_bytes),
                           cached_state_text(model)));
  }
  return 0;
}

int remove(const std::string& model) {
  const auto settings = hub_settings_from_environment();
  if (!settings.ok()) return fail(settings.error());
  const auto id = parse_model_id(model);
  if (!id.ok()) return fail(id.error());
  const auto bytes = remove_model(settings.value(), id.value());
  if (!bytes.ok()) return fail(bytes.error());
  print_line(fmt::format("removed {}, {} are free again", model, bytes_text(bytes.value())));
  return 0;
}

}  // namespace

void add_list_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App* command = app.add_subcommand("list", "the models on this disk");
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return list(*flags); }; });
}

void add_remove_command(CLI::App& app, Command& chosen) {
  auto model = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("remove", "remove a model from this disk");
  command->add_option("MODEL", *model, "org/name, or org/name@revision for that one alone")
      ->required();
  command->callback([model, &chosen] { chosen = [model] { return remove(*model); }; });
}

}  // namespace lockstep

// `lockstep ps`: the models of a running node and its cluster, one line each.
#include <fmt/core.h>

#include <memory>

#include "cli/client/model_lines.h"
#include "cli/client/node_client.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

struct PsFlags {
  NodeFlags node;
  bool json = false;
};

Status list_loaded(const PsFlags& flags) {
  const Json status = TRY(ask_node(flags.node, "/cluster/status"));
  if (flags.json) {
    const Json* models = find(status, "models");
    print_json(models == nullptr ? Json(JsonArray()) : *models);
    return Ok{};
  }
  const auto lines = model_lines(status);
  for (const std::string& line : lines) print_line(line);
  if (lines.empty()) fmt::print(stderr, "No model is loaded; `lockstep load MODEL` loads one.\n");
  return Ok{};
}

}  // namespace

void add_ps_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PsFlags>();
  CLI::App* command = app.add_subcommand("ps", "the models of a running node, one line each");
  add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, list_loaded);
}

}  // namespace lockstep

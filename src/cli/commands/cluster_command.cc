// `lockstep cluster id`, `token` and `leave`: this machine's membership of a cluster; `restart` is
// in cli/commands/cluster_restart.h.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string>

#include "cli/client/node_client.h"
#include "cli/commands/cluster_restart.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "cluster/identity.h"

namespace lockstep {
namespace {

struct ClusterCommandFlags {
  NodeFlags node;
  bool json = false;
};

Result<Identity> open_identity() {
  return Identity::open(TRY(Identity::default_folder()));
}

Status show_id(const ClusterCommandFlags& flags) {
  const Identity identity = TRY(open_identity());
  const std::string cluster = identity.cluster() ? identity.cluster()->id().short_text() : "";
  if (flags.json) {
    print_json(JsonObject{{"id", identity.id().text()},
                          {"name", identity.name()},
                          {"cluster", cluster.empty() ? Json(nullptr) : Json(cluster)},
                          {"folder", identity.folder().string()}});
    return Ok{};
  }
  print_line(fmt::format("node {} ({}), {}", identity.name(), identity.id().short_text(),
                         cluster.empty() ? "in no cluster" : "in cluster " + cluster));
  print_line(fmt::format("its keys are in {}", identity.folder().string()));
  return Ok{};
}

Status make_token(const ClusterCommandFlags& flags) {
  const Json answer = TRY(tell_node(flags.node, "/cluster/token", JsonObject()));
  const std::string token = text_in(answer, "token");
  if (flags.json) {
    print_json(answer);
    return Ok{};
  }
  print_line(token);
  if (stderr_is_terminal()) {
    fmt::print(stderr, "On the other machine: lockstep serve --join {} --token TOKEN\n",
               TRY(open_identity()).name());
  }
  return Ok{};
}

// A running node would keep using the key that it has read.
Status check_not_running(const NodeFlags& flags, const Identity& identity) {
  const auto status = ask_node(flags, "/cluster/status");
  if (!status.ok()) return Ok{};
  const auto nodes = list_in(status.value(), "nodes");
  const bool runs = std::any_of(nodes.begin(), nodes.end(), [&](const Json& node) {
    return flag_in(node, "is_self") && text_in(node, "id") == identity.id().text();
  });
  if (!runs) return Ok{};
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("this node is running (port {}): stop it first, then leave", flags.port)};
}

Status leave(const ClusterCommandFlags& flags) {
  Identity identity = TRY(open_identity());
  if (!identity.cluster()) {
    return Error{ErrorCode::kInvalidArgument, "this node is in no cluster"};
  }
  TRY(check_not_running(flags.node, identity));
  const std::string cluster = identity.cluster()->id().short_text();
  TRY(identity.leave_cluster());
  if (flags.json) {
    print_json(JsonObject{{"left", cluster}});
  } else {
    print_line(fmt::format("{} has left cluster {}; the others see it as absent", identity.name(),
                           cluster));
  }
  return Ok{};
}

void add_cluster_subcommand(CLI::App& cluster, Command& chosen, const char* name, const char* text,
                            Status (*act)(const ClusterCommandFlags&), bool asks_node) {
  auto flags = std::make_shared<ClusterCommandFlags>();
  CLI::App* command = cluster.add_subcommand(name, text);
  if (asks_node) add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, act);
}

}  // namespace

void add_cluster_command(CLI::App& app, Command& chosen) {
  CLI::App* cluster = app.add_subcommand("cluster", "this machine's identity and cluster");
  cluster->require_subcommand(1);
  add_cluster_subcommand(*cluster, chosen, "id", "this node's id, name and cluster", show_id,
                         false);
  add_cluster_subcommand(*cluster, chosen, "token",
                         "a token with which other machines join without a PIN", make_token, true);
  add_cluster_subcommand(*cluster, chosen, "leave",
                         "forget the cluster (the node must not be running)", leave, true);
  add_cluster_restart_command(*cluster, chosen);
}

}  // namespace lockstep

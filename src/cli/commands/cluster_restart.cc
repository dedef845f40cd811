#include "cli/commands/cluster_restart.h"

#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/client/node_client.h"
#include "cli/client/restart_watch.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRestartPollPeriod{200};

struct Flags {
  NodeFlags node;
  std::vector<std::string> names;
  int timeout_s = 120;
  bool json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// While the asked node itself restarts, its silence is expected.
Status wait_until_back(const Flags& flags, const NodeToRestart& node,
                       const std::vector<std::string>& models) {
  const auto deadline = Clock::now() + std::chrono::seconds(flags.timeout_s);
  while (true) {
    const auto status = ask_node(flags.node, "/cluster/status");
    std::optional<std::string> missing;
    if (status.ok()) {
      missing = missing_after_restart(status.value(), node, models);
    } else if (node.is_self) {
      missing = "it is away";
    } else {
      return status.error();
    }
    if (!missing) return Ok{};
    if (Clock::now() >= deadline) {
      return Error{
          ErrorCode::kTimeout,
          fmt::format("{} is not back after {} s: {}; the nodes after it were not restarted",
                      node.name, flags.timeout_s, *missing)};
    }
    show_progress(fmt::format("{}: {}", node.name, *missing));
    std::this_thread::sleep_for(kRestartPollPeriod);
  }
}

Result<double> restart(const Flags& flags, const NodeToRestart& node,
                       const std::vector<std::string>& models) {
  const auto start = Clock::now();
  TRY(tell_node(flags.node, "/cluster/restart", JsonObject{{"node", node.id}}));
  const Status back = wait_until_back(flags, node, models);
  clear_progress();
  TRY(back);
  return seconds_since(start);
}

Status restart_nodes(const Flags& flags) {
  const Json status = TRY(ask_node(flags.node, "/cluster/status"));
  const std::vector<std::string> models = ready_models(status);
  JsonArray restarted;
  for (const NodeToRestart& node : TRY(nodes_to_restart(status, flags.names))) {
    const double seconds = TRY(restart(flags, node, models));
    restarted.push_back(JsonObject{{"node", node.id}, {"name", node.name}, {"seconds", seconds}});
    if (!flags.json) print_line(fmt::format("{} is back after {:.1f} s", node.name, seconds));
  }
  if (flags.json) print_json(JsonObject{{"restarted", std::move(restarted)}});
  return Ok{};
}

}  // namespace

void add_cluster_restart_command(CLI::App& cluster, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = cluster.add_subcommand(
      "restart", "drain and restart nodes, one after another (all, or those named)");
  command->add_option("NODE", flags->names, "a node's name or id");
  command
      ->add_option("--timeout", flags->timeout_s,
                   "seconds for each node to come back and its models to be ready (default 120)")
      ->check(CLI::Range(1, 86400));
  add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, restart_nodes);
}

}  // namespace lockstep

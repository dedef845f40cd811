// `lockstep load` and `lockstep unload`: which models the cluster is to serve.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/client/load_watch.h"
#include "cli/client/node_client.h"
#include "cli/client/wanted_model.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "cli/text/wait_line.h"
#include "cluster/state/desired_state.h"

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kLoadPollPeriod{500};

struct LoadCommandFlags {
  NodeFlags node;
  std::string model;
  std::string draft_model;
  std::vector<std::string> nodes;
  std::vector<std::string> aliases;
  int ranks = 0;
  int replicas = 1;
  std::string parallelism = "auto";
  int context = 0;
  int streams = 0;
  int idle_unload_s = 0;
  std::optional<KvKind> kv;
  bool ngrams_on_disk = false;
  int timeout_s = 3600;
  bool waits = true;
  bool json = false;
};

JsonArray text_list(const std::vector<std::string>& values) {
  JsonArray array;
  for (const std::string& value : values) array.emplace_back(value);
  return array;
}

// `draft_path`: of the draft model, or empty. Options that older nodes would refuse are sent only
// if they are set.
JsonObject request_of(const LoadCommandFlags& flags, const WantedModel& wanted,
                      const std::string& draft_path) {
  JsonObject request{{"model", wanted.name},
                     {"path", wanted.path},
                     {"context", flags.context},
                     {"streams", flags.streams},
                     {"parallel", flags.ranks},
                     {"parallelism", flags.parallelism},
                     {"nodes", text_list(flags.nodes)},
                     {"aliases", text_list(flags.aliases)},
                     {"idle_unload_s", flags.idle_unload_s},
                     {"replicas", flags.replicas}};
  if (!draft_path.empty()) request["draft_model"] = draft_path;
  if (flags.kv) request["kv"] = kv_kind_name(*flags.kv);
  if (flags.ngrams_on_disk) request["ngrams_on_disk"] = true;
  return request;
}

// Waits until the model is ready; returns where it is.
Result<std::string> wait_until_ready(const LoadCommandFlags& flags, const std::string& name) {
  LoadWatch watch(name);
  WaitLine progress(stderr_manner());
  const auto deadline = LoadWatch::Clock::now() + std::chrono::seconds(flags.timeout_s);
  while (true) {
    const Json status = TRY(ask_node(flags.node, "/cluster/status"));
    const auto now = LoadWatch::Clock::now();
    const LoadWatch::Said said = watch.look(status, now);
    if (said.state == LoadWatch::State::kReady) return said.text;
    if (said.state == LoadWatch::State::kGone) return Error{ErrorCode::kCancelled, said.text};
    if (said.state == LoadWatch::State::kRefused) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("{} is not loaded: {}. It stays wanted and is retried; `lockstep "
                               "unload {}` withdraws it",
                               name, said.text, name)};
    }
    if (said.state == LoadWatch::State::kPartial) {
      return Error{ErrorCode::kExhausted,
                   fmt::format("{} serves with fewer groups than requested: {}. The others are "
                               "retried; `lockstep unload {}` withdraws all",
                               name, said.text, name)};
    }
    if (now >= deadline) {
      return Error{
          ErrorCode::kTimeout,
          fmt::format("{} is not ready after {} s ({}); loading continues, see `lockstep status`",
                      name, flags.timeout_s, said.text)};
    }
    progress.show(harmless_line(fmt::format("{}: {}", name, said.text)), now);
    std::this_thread::sleep_for(kLoadPollPeriod);
  }
}

Status load(const LoadCommandFlags& flags) {
  const WantedModel wanted = TRY(wanted_model(flags.model));
  std::string draft_path;
  if (!flags.draft_model.empty()) draft_path = TRY(wanted_model(flags.draft_model)).path;
  JsonObject answer{{"model", wanted.name}, {"path", wanted.path}};
  TRY(tell_node(flags.node, "/cluster/load", request_of(flags, wanted, draft_path)));
  std::string line = fmt::format("{} is wanted; `lockstep status` shows its progress", wanted.name);
  if (flags.idle_unload_s > 0) {
    line = fmt::format("{} is loaded on its first request", wanted.name);
  } else if (flags.waits) {
    const std::string nodes = TRY(wait_until_ready(flags, wanted.name));
    line = fmt::format("{} is ready{}{}", wanted.name, nodes.empty() ? "" : " on ", nodes);
    answer["state"] = "ready";
  }
  if (flags.json) {
    print_json(answer);
  } else {
    print_line(line);
  }
  return Ok{};
}

Status unload(const LoadCommandFlags& flags) {
  const Json answer =
      TRY(tell_node(flags.node, "/cluster/unload", JsonObject{{"model", flags.model}}));
  if (flags.json) {
    print_json(answer);
  } else {
    print_line(fmt::format("{} is unloaded", text_in(answer, "model")));
  }
  return Ok{};
}

}  // namespace

void add_load_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<LoadCommandFlags>();
  CLI::App* command = app.add_subcommand("load", "let the cluster load a model and keep it loaded");
  command
      ->add_option("MODEL", flags->model,
                   "a folder or .gguf file on this machine, or a hub model (org/name)")
      ->required();
  add_draft_model_flag(*command, flags->draft_model);
  command->add_option("--nodes", flags->nodes, "only on these nodes, by name or id (A,B)")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--ranks", flags->ranks, "number of ranks (default: the cluster decides)")
      ->check(CLI::Range(1, GroupSupervisor::kRanksMax));
  command
      ->add_option("--parallel", flags->parallelism,
                   "how ranks share it: tensor (each layer cut), pipeline (each has whole layers) "
                   "or auto (default)")
      ->check(CLI::IsMember({"auto", "tensor", "pipeline"}));
  command
      ->add_option("--replicas", flags->replicas,
                   "groups that each hold the whole model, on separate machines; --ranks is per "
                   "group, --streams for all (default 1)")
      ->check(CLI::Range(int64_t{1}, kReplicasMax));
  command
      ->add_option("--context", flags->context,
                   "positions per sequence (default: the cluster decides)")
      ->check(at_least(1));
  command->add_option("--streams", flags->streams, "answers at once (default: the cluster decides)")
      ->check(at_least(1));
  command
      ->add_option("--alias", flags->aliases, "another name that clients may use (may be repeated)")
      ->allow_extra_args(false);
  command
      ->add_option("--idle-unload", flags->idle_unload_s,
                   "load it on demand, and unload it after this many seconds without use")
      ->check(at_least(1));
  add_kv_flag(*command, flags->kv);
  add_ngrams_flag(*command, flags->ngrams_on_disk);
  command->add_flag("--wait,!--no-wait", flags->waits, "wait until it is ready (default)");
  command->add_option("--timeout", flags->timeout_s, "seconds to wait at most (default 3600)")
      ->check(at_least(1));
  add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, load);
}

void add_unload_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<LoadCommandFlags>();
  CLI::App* command = app.add_subcommand("unload", "let the cluster unload a model");
  command->add_option("MODEL", flags->model, "its name, an alias, or what was loaded")->required();
  add_node_flags(*command, flags->node);
  command->add_flag("--json", flags->json, "one JSON value");
  choose_when_given(*command, chosen, flags, unload);
}

}  // namespace lockstep

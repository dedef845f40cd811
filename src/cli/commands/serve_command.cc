// `lockstep serve`: this machine's node: models as worker processes, the APIs and the page, alone
// or as a part of a cluster.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "access/host_names.h"
#include "base/files/open_files.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "base/process/core_dumps.h"
#include "base/process/free_memory.h"
#include "base/version.h"
#include "cli/client/cluster_entry.h"
#include "cli/client/node_device.h"
#include "cli/client/node_stop.h"
#include "cli/client/wanted_model.h"
#include "cli/commands/commands.h"
#include "cli/flags/access_flags.h"
#include "cli/flags/group_flags.h"
#include "cli/flags/secret_flag.h"
#include "cli/flags/stop_signals.h"
#include "cli/text/output.h"
#include "cli/text/quantisation_text.h"
#include "hub/files/settings.h"
#include "node/cluster/cluster_node.h"
#include "node/disks/alone_desk.h"
#include "planner/facts/device_facts.h"
#include "server/page/built_in_page.h"
#include "server/server.h"

namespace lockstep {
namespace {

constexpr double kBytesPerGib = 1 << 30;
constexpr uint64_t kConnectionsMax = 4096;
constexpr uint64_t kOtherDescriptors = 256;  // of workers, the cluster, files

struct ServeFlags {
  GroupFlags group;
  ClusterFlags cluster;
  bool alone = false;
  bool groups_here = false;  // a flag says how this machine's ranks share the models
  std::vector<std::string> models;
  std::string host = "localhost";
  int port = 8600;
  int drain_s = 10;
  AccessOptions access;
  bool no_control = false;
  std::string claude_model;
  int draft_tokens = 0;
  bool json = false;
  bool json_log = false;
  bool core_dumps = false;
  bool demo = false;
};

// Why a node ends; the first cause wins: a signal, or a user who wants it to start again. Shared
// with the node, which may set it at any time.
enum class Ending : uint8_t { kNone, kEnds, kRestarts };
using SharedEnding = std::shared_ptr<std::atomic<Ending>>;

bool claim(const SharedEnding& ending, Ending value) {
  Ending none = Ending::kNone;
  return ending->compare_exchange_strong(none, value);
}

// Where models are stored; empty if the environment does not say.
std::filesystem::path models_disk() {
  const auto settings = hub_settings_from_environment();
  return settings.ok() ? settings.value().cache : std::filesystem::path();
}

// Everything that serves until the end; destroyed from the last to the first.
struct Serving {
  const std::shared_ptr<PowerGauge> power = std::make_shared<PowerGauge>(PowerMeter::open());
  std::shared_ptr<MachineGauge> machine;  // its thread must find the stop signals blocked
  std::vector<std::shared_ptr<GroupSupervisor>> groups;  // of this machine alone
  ModelServices own;                                     // the same
  DeviceFacts device;                                    // where ranks compute
  int64_t budget_bytes = 0;  // for models: alone all of them, else those of the cluster; 0: unknown
  std::vector<WantedModel> wanted;
  std::unique_ptr<ClusterNode> node;  // null: alone
  std::unique_ptr<AloneDesk> alone;   // null: in a cluster
  std::unique_ptr<Server> server;
};

Error two_named(const std::string& name) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("two models are named {}; rename the folder or file of one", name)};
}

Result<DiskCache> disk_cache_for(const ServeFlags& flags) {
  if (flags.group.cache_disk_gib) return disk_cache_of(flags.group);
  auto cache = default_disk_cache();
  if (cache.ok()) return cache;
  log_warn("the state of prompts is not kept on the disk: {}", cache.error().message);
  return DiskCache{};
}

Result<std::vector<std::shared_ptr<GroupSupervisor>>> start_groups(const ServeFlags& flags,
                                                                   const DiskCache& cache) {
  std::vector<std::shared_ptr<GroupSupervisor>> models;
  for (const std::string& model : flags.models) {
    GroupFlags group = flags.group;
    group.model = model;
    GroupSupervisorOptions options = TRY(group_options(group));
    options.disk_cache = cache;
    auto started = TRY(start_group(options));
    const std::string name = started->status().name;
    for (const std::string& line :
         quantisation_lines(*started->status().quantised, group.verbose)) {
      log_info("{}: {}", name, line);
    }
    if (std::any_of(models.begin(), models.end(),
                    [&](const auto& other) { return other->status().name == name; })) {
      return two_named(name);
    }
    models.push_back(std::move(started));
  }
  return models;
}

// The models of this machine's own groups, for the desk: their files stay.
std::vector<std::string> models_here(const ServeFlags& flags) {
  std::vector<std::string> models;
  for (const std::string& model : flags.models) {
    std::error_code error;
    const bool is_path = std::filesystem::exists(model, error);
    models.push_back(is_path ? std::filesystem::absolute(model, error).string() : model);
  }
  return models;
}

Result<std::unique_ptr<AloneDesk>> open_alone_desk(const ServeFlags& flags) {
  FetchSettings settings;
  settings.hub = TRY(hub_settings_from_environment());
  settings.home = TRY(Identity::default_folder());
  return std::make_unique<AloneDesk>(std::move(settings), models_here(flags));
}

Result<std::vector<WantedModel>> wanted_models(const ServeFlags& flags) {
  std::vector<WantedModel> wanted;
  for (const std::string& model : flags.models) {
    WantedModel one = TRY(wanted_model(model));
    if (std::any_of(wanted.begin(), wanted.end(),
                    [&](const WantedModel& other) { return other.name == one.name; })) {
      return two_named(one.name);
    }
    wanted.push_back(std::move(one));
  }
  return wanted;
}

// To be called before this machine's own groups are loaded.
Result<int64_t> memory_for_models(const ServeFlags& flags, const DeviceFacts& device) {
  const auto asked = static_cast<uint64_t>(flags.cluster.memory_gib * kBytesPerGib);
  const auto budget = device_budget(device, default_budget_bytes(), asked);
  if (flags.alone && !budget.ok()) return 0;
  return static_cast<int64_t>(TRY(budget));
}

int64_t bytes_of(const ModelServices& models) {
  uint64_t bytes = 0;
  for (const auto& model : models) {
    for (const RankStatus& rank : model->status().ranks) {
      bytes += rank.weight_bytes + rank.state_bytes;
    }
  }
  return static_cast<int64_t>(bytes);
}

// The cluster's groups use the link flags, unless these are for groups of this machine alone.
Result<LinkOptions> link_between_machines(const ServeFlags& flags) {
  LinkOptions link = flags.groups_here ? LinkOptions{} : flags.group.spec.link;
  if (link.kind == LinkKind::kShm) link.kind = LinkKind::kTcp;
  TRY(check_link_options(link));
  return link;
}

// A GPU's; nullopt: the node measures the processor.
std::optional<MeasuredSpeed> own_speed(const DeviceFacts& device) {
  return device.is_gpu ? std::optional(speed_of_device(device)) : std::nullopt;
}

// A port in use: with the flag that chooses another one.
Error with_port_flag(Error error, std::string_view flag) {
  if (error.message.ends_with("choose another port")) error.message += fmt::format(" ({})", flag);
  return error;
}

Result<std::unique_ptr<ClusterNode>> start_node(const ClusterFlags& flags,
                                                const ClusterEntry& entry, const LinkOptions& link,
                                                const DiskCache& cache, const Serving& serving,
                                                std::function<void()> on_restart,
                                                std::vector<std::string> own_models) {
  Peers::Options peers;
  peers.port = static_cast<uint16_t>(flags.control_port);
  peers.uses_beacon = !flags.no_beacon;
  peers.join = entry.join;
  peers.version = kVersion;
  DataNetworks data_networks = TRY(DataNetworks::parse(flags.data_network));
  auto node = ClusterNode::start({.identity = entry.identity,
                                  .peers = std::move(peers),
                                  .budget_bytes = serving.budget_bytes,
                                  .is_spare = flags.spare,
                                  .keeps_shares = flags.keep == "shares",
                                  .version = kVersion,
                                  .disk_cache = cache,
                                  .device = serving.device.kind,
                                  .speed = own_speed(serving.device),
                                  .power = serving.power,
                                  .machine = serving.machine,
                                  .link = link,
                                  .data_networks = std::move(data_networks),
                                  .on_restart = std::move(on_restart),
                                  .models_here = std::move(own_models)});
  if (!node.ok()) {
    return with_port_flag(node.error(),
                          "--control-port; a second node on this machine also needs another "
                          "--port and LOCKSTEP_HOME");
  }
  return node;
}

// An already wanted model keeps its promises, unless a flag sets another one.
Status want(ClusterControl& control, const WantedModel& model, int context) {
  const ClusterReport report = control.report();
  const bool is_wanted =
      std::any_of(report.models.begin(), report.models.end(), [&](const ClusterModelReport& other) {
        return other.entry.name == model.name && other.entry.path == model.path;
      });
  if (is_wanted && context == 0) return Ok{};
  DesiredEntry entry;
  entry.name = model.name;
  entry.path = model.path;
  entry.wanted = true;
  entry.promises.context = context;
  return control.load(std::move(entry));
}

std::string self_name(const ClusterReport& report) {
  for (const ClusterNodeReport& node : report.nodes) {
    if (node.is_self) return node.name;
  }
  return "this machine";
}

// The control page, printed only on a terminal: the code in its address must not get into a log.
std::string page_url(const ServeFlags& flags, const Serving& serving) {
  const std::string host = host_to_open(flags.host);
  if (!stdout_is_terminal() || flags.no_control || !is_loopback_authority(host)) return "";
  const auto path = serving.server->make_page_path();
  if (!path.ok()) return "";
  return fmt::format("http://{}:{}{}", host, serving.server->port(), path.value());
}

void announce_json(const std::string& url, const std::string& page, const Serving& serving) {
  JsonArray names;
  for (const auto& model : serving.own) names.emplace_back(model->status().name);
  for (const WantedModel& model : serving.wanted) names.emplace_back(model.name);
  JsonObject said{{"url", url}, {"port", serving.server->port()}, {"models", names}};
  if (!page.empty()) said["page"] = page;
  if (serving.node != nullptr) {
    const ClusterReport report = serving.node->control().report();
    said["cluster"] = report.cluster;
    said["node"] = self_name(report);
    said["control_port"] = serving.node->control_port();
  }
  print_json(said);
}

void announce_cluster(const ClusterNode& node, const ClusterReport& report, bool has_founded) {
  const std::string name = self_name(report);
  print_line(fmt::format("Node {} of cluster {}, port {} for other nodes.", name, report.cluster,
                         node.control_port()));
  if (!has_founded) return;
  const std::string port =
      node.control_port() == Peers::kControlPort ? "" : fmt::format(":{}", node.control_port());
  print_line(fmt::format(
      "The cluster is new. Another machine joins with: lockstep serve --join {}{}", name, port));
}

void announce(const ServeFlags& flags, const Serving& serving, bool has_founded) {
  const std::string url =
      fmt::format("http://{}:{}/", host_to_open(flags.host), serving.server->port());
  const std::string page = page_url(flags, serving);
  if (flags.json) return announce_json(url, page, serving);
  if (serving.node != nullptr) {
    announce_cluster(*serving.node, serving.node->control().report(), has_founded);
  }
  for (const auto& model : serving.own) {
    const ModelStatus status = model->status();
    print_line(fmt::format(
        "{}: {} over {}, {} each, context {}", status.name, counted(status.ranks.size(), "rank"),
        status.link, counted(static_cast<uint64_t>(status.threads), "thread"), status.context));
  }
  for (const WantedModel& model : serving.wanted) {
    print_line(fmt::format(
        "{}: loaded by the cluster; the page and `lockstep status` show the progress", model.name));
  }
  if (!page.empty()) {
    print_line(
        fmt::format("The page with control of this node, once: {} (`lockstep page` prints "
                    "another)",
                    page));
  }
  if (flags.demo) {
    print_line(
        "A demo: the page and programs of this machine may kill a worker (POST /demo/kill), to see "
        "that answers go on unchanged.");
  }
  if (is_every_address(flags.host)) {
    print_line(fmt::format("Other machines reach port {} of this one by its name and addresses.",
                           serving.server->port()));
  }
  print_line(fmt::format("Serving at {} (the page), {}v1 (OpenAI API). Ctrl-C ends.", url, url));
}

Result<AccessOptions> access_of(const ServeFlags& flags) {
  AccessOptions access = TRY(access_with_keys(flags.access));
  access.control_folder = TRY(Identity::default_folder());
  access.takes_control = !flags.no_control;
  return access;
}

Result<std::unique_ptr<Server>> start_server(const ServeFlags& flags, const Serving& serving) {
  ServerOptions options;
  options.host = flags.host;
  options.port = static_cast<uint16_t>(flags.port);
  options.version = kVersion;
  options.access = TRY(access_of(flags));
  const uint64_t open_files = std::max(raise_open_files_max(), 2 * kOtherDescriptors);
  options.limits.connections_max =
      static_cast<int>(std::min(kConnectionsMax, open_files - kOtherDescriptors));
  options.claude_model = flags.claude_model;
  options.draft_tokens = flags.draft_tokens;
  options.power = serving.power;
  options.desk = serving.node ? &serving.node->desk() : &serving.alone->desk();
  options.machine = serving.machine;
  options.budget_bytes = serving.budget_bytes;
  if (const auto speed = own_speed(serving.device)) {
    options.own_offer = NodeOffer{.node = {},
                                  .free_bytes = serving.budget_bytes - bytes_of(serving.own),
                                  .speed = speed->read_bytes_s,
                                  .operations_s = speed->operations_s};
  }
  options.page = built_in_page();
  options.program = TRY(own_program_file());
  const std::vector<std::string> paths = models_here(flags);
  for (size_t i = 0; i < serving.groups.size(); ++i) {  // the same order
    options.own_paths[serving.groups[i]->status().name] = paths[i];
  }
  if (flags.demo) {
    options.kill_worker = [group = serving.groups.front()](std::optional<int> rank) {
      return group->kill_worker(rank);
    };
  }
  std::shared_ptr<ModelDirectory> models = std::make_shared<FixedModels>(serving.own);
  const auto start = [&](ClusterControl* control) -> Result<std::unique_ptr<Server>> {
    auto server = Server::start(options, models, control);
    if (!server.ok()) return with_port_flag(server.error(), "--port");
    return server;
  };
  if (serving.node == nullptr) return start(nullptr);
  if (serving.own.empty()) {
    models = serving.node->models();
  } else {
    models = std::make_shared<JoinedModels>(models, serving.node->models());
  }
  return start(&serving.node->control());
}

// Ranks end with the process that started them: their channel closes, and Linux also kills them. A
// node that was to start again does so, which removes whatever hangs.
void end_at_once(const SharedEnding& ending, const Command& restart_program) {
  log_warn(
      "this node does not end in time because something in it takes too long; it is killed now");
  if (ending->load() == Ending::kRestarts) restart_program();
  ::_exit(EXIT_FAILURE);
}

void run_until_stopped(const StopSignals& signals, NodeStop& stop, Serving& serving) {
  stop.attach(*serving.server, serving.node.get());
  serving.server->run();
  if (serving.node == nullptr || signals.is_urgent()) return;
  const std::chrono::milliseconds left = stop.left();
  if (left.count() > 0) serving.node->drain(left);
}

// Whether the program is to start again.
Result<bool> serve(const ServeFlags& flags, const Command& restart_program) {
  flags.core_dumps ? allow_core_dumps() : forbid_core_dumps();
  return_large_blocks_at_once();
  // Before models are loaded, which may take long.
  TRY(TRY(AccessControl::open(TRY(access_of(flags))))->check_host(flags.host));
  const auto ending = std::make_shared<std::atomic<Ending>>(Ending::kNone);
  StopWatchdog watchdog([ending, restart_program] { end_at_once(ending, restart_program); });
  Serving serving;
  const bool runs_groups = flags.alone || flags.groups_here;
  if (!runs_groups) serving.wanted = TRY(wanted_models(flags));
  std::optional<ClusterEntry> entry;
  if (!flags.alone) entry = TRY(enter_cluster(flags.cluster));
  if (flags.json_log) set_log_json(true);
  NodeStop stop(std::chrono::seconds(flags.drain_s), watchdog);
  StopSignals signals;  // destroyed before anything that its thread uses
  serving.machine = std::make_shared<MachineGauge>(models_disk());
  signals.watch(
      [&] {
        claim(ending, Ending::kEnds);
        stop.first();
      },
      [&] { stop.second(); });
  const auto on_restart = [ending] {
    if (claim(ending, Ending::kRestarts)) ::kill(::getpid(), SIGTERM);
  };
  serving.device = TRY(node_device(flags.group.spec.device, runs_groups));
  serving.budget_bytes = TRY(memory_for_models(flags, serving.device));
  const DiskCache cache = TRY(disk_cache_for(flags));
  if (runs_groups) serving.groups = TRY(start_groups(flags, cache));
  serving.own.assign(serving.groups.begin(), serving.groups.end());
  if (entry) {
    const LinkOptions link = TRY(link_between_machines(flags));
    const int64_t left = serving.budget_bytes - bytes_of(serving.own);
    serving.budget_bytes = std::max<int64_t>(0, left);
    serving.node = TRY(start_node(flags.cluster, *entry, link, cache, serving, on_restart,
                                  runs_groups ? models_here(flags) : std::vector<std::string>()));
    for (const WantedModel& model : serving.wanted) {
      TRY(want(serving.node->control(), model, flags.group.spec.context));
    }
  }
  if (!entry) serving.alone = TRY(open_alone_desk(flags));
  serving.server = TRY(start_server(flags, serving));
  announce(flags, serving, entry && entry->has_founded);
  run_until_stopped(signals, stop, serving);
  return ending->load() == Ending::kRestarts && !signals.is_urgent();
}

// Whether a flag for worker processes of this machine was given, which no cluster plans.
bool says_how_grouped(const CLI::App& command) {
  constexpr const char* kFlags[] = {
      "--ranks",         "--shares",      "--parallel", "--stages",         "--link",
      "--link-delay-us", "--link-gbit-s", "--topology", "--rails",          "--encrypt",
      "--wire",          "--threads",     "--pin",      "--exact",          "--kv",
      "--bits",          "--streams",     "--queue",    "--no-draft-layer", "--draft-model"};
  return std::any_of(std::begin(kFlags), std::end(kFlags),
                     [&](const char* flag) { return command.get_option(flag)->count() > 0; });
}

}  // namespace

void add_serve_command(CLI::App& app, Command& chosen, Command restart_program) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command =
      app.add_subcommand("serve", "serve models through the OpenAI API and a web page");
  command->add_option("MODEL", flags->models,
                      "model folders, .gguf files or models of a hub (org/name). The cluster loads "
                      "them; with --alone, or a flag that says how ranks share a model, this "
                      "machine does");
  command->add_option("--port", flags->port, "HTTP port (default 8600; 0 picks one)")
      ->check(CLI::Range(0, 65535));
  command->add_option("--host", flags->host, "address to listen on (default localhost)");
  command
      ->add_option("--drain", flags->drain_s,
                   "seconds for requests to finish when the node is stopped (default 10)")
      ->check(CLI::Range(0, 86400));
  add_access_flags(*command, flags->access);
  command->add_flag("--no-control", flags->no_control,
                    "do not let this node be changed over HTTP, and treat no caller as a program "
                    "of this machine: for a node behind a proxy");
  command->add_option("--claude-model", flags->claude_model,
                      "the model that names such as claude-* mean for clients of Anthropic's API "
                      "(default: the only one)");
  add_draft_flags(*command, flags->draft_tokens, flags->group);
  CLI::Option* alone = command->add_flag("--alone", flags->alone, "do not be part of a cluster");
  for (CLI::Option* option : add_cluster_flags(*command, flags->cluster)) {
    if (option->get_envname().empty()) alone->excludes(option);
  }
  command
      ->add_flag("--demo", flags->demo,
                 "let the page and programs of this machine kill worker processes of the one model "
                 "(POST /demo/kill), to show that nothing is lost")
      ->needs(alone)
      ->excludes("--no-control");
  command->add_flag("--json", flags->json, "print the address as one JSON value");
  command->add_flag("--log-json", flags->json_log, "log lines as JSON");
  add_core_dump_flag(*command, flags->core_dumps);
  add_group_flags(*command, flags->group);
  add_load_limits(*command, flags->group);
  add_cache_flag(*command, flags->group,
                 "default 8, or a tenth of what is free where that is less");
  add_bits_flag(*command, flags->group);
  command->callback([flags, command, restart_program, &chosen] {
    flags->groups_here = !flags->models.empty() && says_how_grouped(*command);
    if (flags->alone && flags->models.empty()) {
      throw CLI::RequiredError("MODEL (with --alone)");
    }
    if (flags->demo && flags->models.size() != 1) {
      throw CLI::ValidationError("--demo", "it shows one model: name one");
    }
    chosen = [flags, restart_program] {
      const auto restarts = serve(*flags, restart_program);
      if (!restarts.ok()) return fail(restarts.error());
      return restarts.value() ? restart_program() : 0;
    };
  });
}

}  // namespace lockstep

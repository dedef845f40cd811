// `lockstep router`: spreads requests over independent nodes or groups.
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "access/host_names.h"
#include "base/files/open_files.h"
#include "base/log.h"
#include "base/process/core_dumps.h"
#include "base/process/free_memory.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/flags/access_flags.h"
#include "cli/flags/secret_flag.h"
#include "cli/flags/stop_signals.h"
#include "cli/text/output.h"
#include "router/forwarding.h"
#include "router/router.h"

namespace lockstep {
namespace {

constexpr const char* kKeyCredential = "lockstep.api-key";

struct RouterFlags {
  std::vector<std::string> to;
  std::string host = "localhost";
  int port = 8700;
  double busy_factor = BalanceLimits{}.busy_factor;
  int busy_slack = BalanceLimits{}.busy_slack;
  int drain_s = 10;
  SecretFlag api_key;
  AccessOptions access;
  bool json = false;
  bool json_log = false;
  bool core_dumps = false;
};

void announce_router(const RouterFlags& flags, uint16_t port, size_t backend_count) {
  const std::string url = fmt::format("http://{}:{}/", host_to_open(flags.host), port);
  if (flags.json) {
    print_json(JsonObject{{"url", url}, {"port", port}, {"backends", backend_count}});
    return;
  }
  print_line(fmt::format("Routing {}v1 to {}; {}router/status shows their state. Ctrl-C ends.", url,
                         counted(backend_count, "backend"), url));
}

Status route(const RouterFlags& flags) {
  flags.core_dumps ? allow_core_dumps() : forbid_core_dumps();
  return_large_blocks_at_once();
  StopSignals signals;
  if (flags.json_log) set_log_json(true);
  RouterOptions options;
  options.host = flags.host;
  options.port = static_cast<uint16_t>(flags.port);
  options.balance = {flags.busy_factor, flags.busy_slack};
  options.limits.drain_timeout = std::chrono::seconds(flags.drain_s);
  options.poll.api_key = TRY(read_secret(flags.api_key, kKeyCredential));
  options.access = TRY(access_with_keys(flags.access));
  options.version = kVersion;
  for (const std::string& url : flags.to) {
    options.backends.push_back(TRY(parse_backend_url(url)));
  }
  const size_t backend_count = options.backends.size();
  const auto router = TRY(Router::start(std::move(options)));
  announce_router(flags, router->port(), backend_count);
  const auto stop = [&router] {
    log_info("stopping");
    router->stop();
  };
  signals.watch(stop, [] {});  // its drain time is limited
  router->run();
  return Ok{};
}

}  // namespace

void add_router_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<RouterFlags>();
  CLI::App* command =
      app.add_subcommand("router", "spread requests over independent nodes or groups");
  command->add_option("--to", flags->to, "address of a backend (http://HOST:8600); once for each")
      ->required();
  command->add_option("--port", flags->port, "HTTP port (default 8700; 0 picks one)")
      ->check(CLI::Range(0, 65535));
  command->add_option("--host", flags->host, "address to listen on (default localhost)");
  command
      ->add_option(
          "--busy-factor", flags->busy_factor,
          "a backend may have this many times the requests of the least busy one (default 2)")
      ->check(CLI::Range(1.0, 1000.0));
  command->add_option("--busy-slack", flags->busy_slack, "plus this many requests (default 4)")
      ->check(CLI::Range(0, 1'000'000));
  command
      ->add_option("--drain", flags->drain_s,
                   "seconds for requests to finish when the router is stopped (default 10)")
      ->check(CLI::Range(0, 86400));
  command
      ->add_option("--api-key", flags->api_key.value,
                   "API key for asking the backends for their models, if they need one")
      ->envname("LOCKSTEP_API_KEY");
  command
      ->add_option("--api-key-file", flags->api_key.file,
                   "the file that holds it, which no other user may read")
      ->envname("LOCKSTEP_API_KEY_FILE");
  add_access_flags(*command, flags->access);
  command->add_flag("--json", flags->json, "print the address as one JSON value");
  command->add_flag("--log-json", flags->json_log, "log lines as JSON");
  add_core_dump_flag(*command, flags->core_dumps);
  choose_when_given(*command, chosen, flags, route);
}

}  // namespace lockstep

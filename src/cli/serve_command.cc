// `lockstep serve`: this machine's node: models as worker processes, the APIs and the page.
#include <fmt/core.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/group_flags.h"
#include "cli/output.h"
#include "cli/quantisation_text.h"
#include "server/server.h"

namespace lockstep {
namespace {

struct Flags {
  GroupFlags group;
  std::vector<std::string> models;
  std::string host = "localhost";
  int port = 8600;
  bool json = false;
  bool json_log = false;
};

// Waits for SIGINT or SIGTERM on a thread of its own and stops the server. Signals must be blocked
// in all threads, so it is made before any other thread.
class SignalStop {
 public:
  SignalStop() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, kWake}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    signal(SIGPIPE, SIG_IGN);
  }

  void watch(Server& server) {
    thread_ = std::thread([this, &server] {
      int signal = 0;
      sigwait(&signals_, &signal);
      if (signal != kWake) log_info("stopping");
      server.stop();
    });
  }

  ~SignalStop() {
    if (!thread_.joinable()) return;
    pthread_kill(thread_.native_handle(), kWake);
    thread_.join();
  }

 private:
  static constexpr int kWake = SIGUSR1;  // sent by ourselves, to end the thread
  sigset_t signals_{};
  std::thread thread_;
};

void announce(const Flags& flags, uint16_t port,
              const std::vector<std::shared_ptr<ModelService>>& models) {
  const std::string url = fmt::format("http://{}:{}/", flags.host, port);
  JsonArray names;
  for (const auto& model : models) names.emplace_back(model->status().name);
  if (flags.json) {
    print_json(JsonObject{{"url", url}, {"port", port}, {"models", names}});
    return;
  }
  for (const auto& model : models) {
    const ModelStatus status = model->status();
    print_line(fmt::format(
        "{}: {} over {}, {} each, context {}", status.name, counted(status.ranks.size(), "rank"),
        status.link, counted(static_cast<uint64_t>(status.threads), "thread"), status.context));
  }
  print_line(fmt::format("Serving at {} (the page), {}v1 (OpenAI API). Ctrl-C ends.", url, url));
}

Status serve(const Flags& flags) {
  SignalStop signals;
  if (flags.json_log) set_log_json(true);
  std::vector<std::shared_ptr<ModelService>> models;
  for (const std::string& model : flags.models) {
    GroupFlags group = flags.group;
    group.model = model;
    auto started = TRY(start_group(TRY(group_options(group))));
    const std::string name = started->status().name;
    for (const std::string& line :
         quantisation_lines(*started->status().quantised, group.verbose)) {
      log_info("{}: {}", name, line);
    }
    if (std::any_of(models.begin(), models.end(),
                    [&](const auto& other) { return other->status().name == name; })) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("two models are named {}; rename the folder or file of one", name)};
    }
    models.push_back(std::move(started));
  }
  ServerOptions options;
  options.host = flags.host;
  options.port = static_cast<uint16_t>(flags.port);
  options.version = kVersion;
  const auto server = TRY(Server::start(options, models));
  announce(flags, server->port(), models);
  signals.watch(*server);
  server->run();
  return Ok{};
}

}  // namespace

void add_serve_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command =
      app.add_subcommand("serve", "serve models through the OpenAI API and a web page");
  command
      ->add_option("MODEL", flags->models, "model folders, .gguf files or pulled models (org/name)")
      ->required();
  command->add_option("--port", flags->port, "HTTP port (default 8600; 0 picks one)")
      ->check(CLI::Range(0, 65535));
  command->add_option("--host", flags->host, "address to listen on (default localhost)");
  command->add_flag("--json", flags->json, "print the address as one JSON value");
  command->add_flag("--log-json", flags->json_log, "log lines as JSON");
  add_group_flags(*command, flags->group);
  add_bits_flag(*command, flags->group);
  command->callback([flags, &chosen] {
    chosen = [flags] {
      const Status status = serve(*flags);
      return status.ok() ? 0 : fail(status.error());
    };
  });
}

}  // namespace lockstep

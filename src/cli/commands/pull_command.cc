// `lockstep pull`: downloads a model from a Hugging Face hub, or resumes that.
#include <fmt/core.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "cli/text/transfer_text.h"
#include "hub/pull.h"

namespace lockstep {
namespace {

struct PullFlags {
  std::string model;
  FileRules rules;
  int connections = 8;
  int retries = 7;
  int piece_kib = static_cast<int>(kFilePieceBytes >> 10);
  bool verify = false;
  bool quiet = false;
  bool json = false;
};

// Ctrl-C ends the download in order; downloaded data is kept.
std::atomic<bool> stopped{false};

void stop_on_signals() {
  struct sigaction action {};
  action.sa_handler = [](int) { stopped.store(true, std::memory_order_relaxed); };
  action.sa_flags = SA_RESETHAND;  // the second one ends the process
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Result<PullReport> pull(const PullFlags& flags) {
  PullOptions options;
  options.settings = TRY(hub_settings_from_environment());
  options.id = TRY(parse_model_id(flags.model));
  options.rules = flags.rules;
  options.connections = flags.connections;
  options.retries = flags.retries;
  options.piece_bytes = static_cast<uint64_t>(flags.piece_kib) << 10;
  options.verifies = flags.verify;
  options.cancelled = &stopped;
  TransferText text(flags.model);
  if (!flags.quiet) {
    show_progress(
        fmt::format("{}: asking {} for its files", flags.model, options.settings.endpoint));
    options.on_progress = [&](const DownloadProgress& progress) {
      text.show(progress, std::chrono::steady_clock::now());
    };
  }
  stop_on_signals();
  auto report = pull_model(options);
  clear_progress();
  return report;
}

void print_report(const PullFlags& flags, const PullReport& report) {
  if (flags.json) {
    print_json(JsonObject{{"model", flags.model},
                          {"commit", report.commit},
                          {"path", report.path.string()},
                          {"files", report.files},
                          {"size_bytes", report.size_bytes},
                          {"received_bytes", report.received_bytes},
                          {"repaired_files", report.repaired_files}});
    return;
  }
  if (report.repaired_files > 0) {
    print_line(fmt::format("{} {} damaged on disk and fetched again",
                           counted(report.repaired_files, "file"),
                           report.repaired_files == 1 ? "was" : "were"));
  }
  print_line(report.path.string());
}

int run_pull_command(const PullFlags& flags) {
  const auto report = pull(flags);
  if (!report.ok()) return fail(report.error());
  print_report(flags, report.value());
  return 0;
}

}  // namespace

void add_pull_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<PullFlags>();
  CLI::App* command =
      app.add_subcommand("pull", "download a model, or resume an interrupted download");
  command
      ->add_option("MODEL", flags->model,
                   "org/name, org/name@revision or org/name/file.gguf of the hub (HF_ENDPOINT)")
      ->required();
  command->add_option("--include", flags->rules.include,
                      "only weight files that match, such as '*Q4_K_M*' (may be repeated)");
  command->add_option("--exclude", flags->rules.exclude, "no files that match (may be repeated)");
  command->add_flag("--all", flags->rules.all, "every file of the repository");
  command->add_option("--connections", flags->connections, "transfers at once (default 8)")
      ->check(CLI::Range(1, kConnectionsMax));
  command
      ->add_option("--retries", flags->retries,
                   "retries in a row without progress, with growing pauses (default 7)")
      ->check(CLI::Range(0, 1000));
  command->add_option("--piece-kib", flags->piece_kib, "for tests: bytes fetched at once")
      ->check(CLI::Range(1, 1 << 20))
      ->group("");
  command->add_flag("--verify", flags->verify, "also check existing files against their hashes");
  command->add_flag("-q,--quiet", flags->quiet, "no progress");
  command->add_flag("--json", flags->json, "one JSON value at the end");
  command->callback([flags, &chosen] { chosen = [flags] { return run_pull_command(*flags); }; });
}

}  // namespace lockstep

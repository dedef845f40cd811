#include "cli/command_line.h"

#include <fmt/core.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "node/worker/worker.h"

namespace lockstep {
namespace {

constexpr const char* kFooter =
    "\nExamples:\n"
    "  lockstep run models/stories260K \"Once upon a time\" --ranks 2\n"
    "  lockstep serve models/stories260K --ranks 2 --alone\n"
    "  lockstep pull Qwen/Qwen3-0.6B\n"
    "  lockstep bench models/stories260K -p 128 -n 64 --json\n\n"
    "LOCKSTEP_ISA=scalar|avx2|avx512|neon|neon_dotprod|neon_i8mm forces an instruction set,\n"
    "not the answer.\n"
    "`lockstep COMMAND --help` says more about a command.";

// More than any node has open at once.
constexpr int kDescriptorsMax = 65'536;

// `lockstep worker --control-fd N`, started only by a node.
int run_worker(std::span<char* const> arguments) {
  const auto flags = parse_worker_arguments(arguments);
  if (!flags.ok()) return fail(flags.error());
  return worker_main(flags.value(), load_engine);
}

// In this process, so that a service manager sees no end; with the program now at its path, which
// may be newer.
int restart_program(char** argv) {
  // Open descriptors, such as the listening port, are not inherited.
  for (int fd = STDERR_FILENO + 1; fd < kDescriptorsMax; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);  // a pending signal ends the process here
  ::execvp(argv[0], argv);
  return fail({ErrorCode::kInternal, fmt::format("this node has ended and cannot restart: {}: {}",
                                                 argv[0], std::strerror(errno))});
}

bool has_command(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* command) { return command->get_name() == name; });
}

// Commands inherit the footer, but its examples are for the whole program.
void remove_footers(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    if (command->get_footer() == kFooter) command->footer("");
    remove_footers(*command);
  }
}

// "lockstep cluster": the words of the innermost command that was named.
std::string command_words(const CLI::App& app) {
  const auto named = app.get_subcommands();
  if (named.empty()) return app.get_name();
  return app.get_name() + " " + command_words(*named.front());
}

int report(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  // CLI11 names what is left over in reverse order.
  const std::vector<std::string> unexpected = dynamic_cast<const CLI::ExtrasError*>(&error)
                                                  ? app.remaining(true)
                                                  : std::vector<std::string>{};
  const std::string said = unexpected.empty()
                               ? std::string(error.what())
                               : fmt::format("not expected: {}", fmt::join(unexpected, " "));
  fmt::print(stderr, "lockstep: {}; see `{} --help`\n", said, command_words(app));
  return kExitUsage;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") {
    return run_worker({argv + 2, static_cast<size_t>(argc - 2)});
  }
  CLI::App app{"lockstep turns the machines you own into one LLM server.", "lockstep"};
  app.set_version_flag("--version", fmt::format("lockstep {}", kVersion));
  app.footer(kFooter);
  app.require_subcommand(1);
  Command chosen;
  // The order of --help: daily work, models, the node and its cluster, measuring, for programs.
  add_run_command(app, chosen);
  add_serve_command(app, chosen, [argv] { return restart_program(argv); });
  add_load_command(app, chosen);
  add_unload_command(app, chosen);
  add_ps_command(app, chosen);
  add_top_command(app, chosen);
  add_status_command(app, chosen);
  add_logs_command(app, chosen);
  add_page_command(app, chosen);
  add_doctor_command(app, chosen);
  add_pull_command(app, chosen);
  add_list_command(app, chosen);
  add_remove_command(app, chosen);
  add_show_command(app, chosen);
  add_plan_command(app, chosen);
  add_cluster_command(app, chosen);
  add_key_command(app, chosen);
  add_launch_command(app, chosen);
  add_router_command(app, chosen);
  add_bench_command(app, chosen);
  add_probe_command(app, chosen);
  add_quantize_command(app, chosen);
  add_bug_report_command(app, chosen);
  add_completion_command(app, chosen);
  add_logits_command(app, chosen);
  add_tokenize_command(app, chosen);
  add_template_command(app, chosen);
  add_schema_command(app, chosen);
  add_toolparse_command(app, chosen);
  remove_footers(app);
  const std::string first = argc > 1 ? argv[1] : "--help";
  if (!first.starts_with('-') && !has_command(app, first)) {
    return fail({ErrorCode::kInvalidArgument,
                 fmt::format("there is no command {}; see `lockstep --help`", first)});
  }
  if (first.starts_with('-') && !app.get_option_no_throw(first)) {
    return fail(
        {ErrorCode::kInvalidArgument,
         fmt::format("there is no flag {} before a command; see `lockstep --help`", first)});
  }
  try {
    if (argc == 1) throw CLI::CallForHelp();
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report(app, error);
  }
  return chosen();
}

}  // namespace lockstep

// One function for each command: adds its flags to the application and, if the command was given,
// stores the function to run in `chosen`. That function returns the exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"
#include "cli/text/output.h"

namespace lockstep {

using Command = std::function<int()>;

// If `command` is given, `act` runs, and its error is printed.
template <class Flags>
void choose_when_given(CLI::App& command, Command& chosen, std::shared_ptr<Flags> flags,
                       Status (*act)(const Flags&)) {
  command.callback([flags = std::move(flags), act, &chosen] {
    chosen = [flags, act] { return exit_status(act(*flags)); };
  });
}

void add_run_command(CLI::App& app, Command& chosen);
// `restart_program` executes the program again with the same arguments; it returns only on failure.
void add_serve_command(CLI::App& app, Command& chosen, Command restart_program);
void add_logits_command(CLI::App& app, Command& chosen);
void add_tokenize_command(CLI::App& app, Command& chosen);
void add_template_command(CLI::App& app, Command& chosen);
void add_schema_command(CLI::App& app, Command& chosen);
void add_toolparse_command(CLI::App& app, Command& chosen);
void add_show_command(CLI::App& app, Command& chosen);
void add_plan_command(CLI::App& app, Command& chosen);
void add_bench_command(CLI::App& app, Command& chosen);
void add_bench_serve_command(CLI::App& bench, Command& chosen);  // a subcommand of bench
void add_status_command(CLI::App& app, Command& chosen);
void add_doctor_command(CLI::App& app, Command& chosen);
void add_bug_report_command(CLI::App& app, Command& chosen);
void add_probe_command(CLI::App& app, Command& chosen);
void add_pull_command(CLI::App& app, Command& chosen);
void add_list_command(CLI::App& app, Command& chosen);
void add_remove_command(CLI::App& app, Command& chosen);
void add_router_command(CLI::App& app, Command& chosen);
void add_quantize_command(CLI::App& app, Command& chosen);
void add_load_command(CLI::App& app, Command& chosen);
void add_unload_command(CLI::App& app, Command& chosen);
void add_cluster_command(CLI::App& app, Command& chosen);
void add_page_command(CLI::App& app, Command& chosen);
void add_key_command(CLI::App& app, Command& chosen);
void add_ps_command(CLI::App& app, Command& chosen);
void add_logs_command(CLI::App& app, Command& chosen);
void add_top_command(CLI::App& app, Command& chosen);
void add_launch_command(CLI::App& app, Command& chosen);
void add_completion_command(CLI::App& app, Command& chosen);

}  // namespace lockstep

// `lockstep doctor`: what is wrong with this machine and its cluster, and how to mend it.
#include <fmt/core.h>
#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/process/child_process.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "doctor/doctor.h"

namespace lockstep {
namespace {

struct DoctorFlags {
  int port = kUsualHttpPort;
  bool json = false;
  bool gpus = false;
  std::vector<std::string> cables;
};

Signs signs_of_stdout() {
  if (isatty(STDOUT_FILENO) == 0) return Signs::kWords;
  std::setlocale(LC_CTYPE, "");
  return std::string_view(nl_langinfo(CODESET)) == "UTF-8" ? Signs::kSymbols : Signs::kWords;
}

Result<Findings> wanted_findings(const DoctorFlags& flags) {
  if (flags.gpus) return examine_gpus();
  if (!flags.cables.empty()) return examine_cables(flags.cables);
  std::string program = TRY(own_program_file());
  return examine({.http_port = static_cast<uint16_t>(flags.port), .program = std::move(program)});
}

int doctor(const DoctorFlags& flags) {
  const auto examined = wanted_findings(flags);
  if (!examined.ok()) return fail(examined.error());
  const Findings& findings = examined.value();
  if (flags.json) {
    print_json(findings_json(findings));
  } else {
    fmt::print("{}", findings_text(findings, signs_of_stdout()));
  }
  return problem_count(findings) > 0 ? kExitFailure : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* command =
      app.add_subcommand("doctor", "say what is wrong with this machine, and how to fix it");
  command->add_option("--port", flags->port, "HTTP port of the node (default 8600)")
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--cables", flags->cables,
                   "only the Thunderbolt cables between Macs: for each Mac a file with what "
                   "`system_profiler SPThunderboltDataType -json` prints there")
      ->type_name("FILE...");
  command->add_flag("--gpus", flags->gpus, "only the GPUs: their drivers and a test of each")
      ->excludes("--cables");
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return doctor(*flags); }; });
}

}  // namespace lockstep

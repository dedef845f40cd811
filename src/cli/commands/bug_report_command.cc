// `lockstep bug-report`: one archive for diagnosing a fault, without secrets; with --first-mac also
// trials of a machine on which lockstep never ran.
#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/process/child_process.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "doctor/doctor.h"
#include "doctor/report/bug_report.h"
#include "doctor/report/machine_trials.h"
#include "kernels/answers/fixed_answers.h"
#include "kernels/isa.h"
#include "transport/verbs/verbs_report.h"

namespace lockstep {
namespace {

struct BugReportFlags {
  int port = kUsualHttpPort;
  std::string file;  // empty: named after the time
  bool json = false;
  bool first_mac = false;
  // Trials of --first-mac, each of which is this command in a process of its own.
  bool kernel_answers = false;
  bool rdma_devices = false;
};

std::string usual_name() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("lockstep-bug-report-{:04}{:02}{:02}-{:02}{:02}{:02}.tar", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

Json report_json(const std::string& path, const BugReport& report) {
  JsonArray files;
  for (const ReportFile& file : report.files) {
    files.push_back(
        JsonObject{{"name", file.name}, {"what", file.what}, {"bytes", file.content.size()}});
  }
  return JsonObject{{"path", path},
                    {"files", std::move(files)},
                    {"missing", JsonArray(report.missing.begin(), report.missing.end())}};
}

JsonObject fixed_answer_json(const FixedAnswer& answer) {
  return {{"kernel", answer.kernel},
          {"right", answer.is_right()},
          {"found", fmt::format("{:016x}", answer.found)},
          {"expected", fmt::format("{:016x}", answer.expected)}};
}

// {"right", "used", "tables": [{"isa", "answers": [...]}], "math": {...}}; `used`: what models run
// on.
int print_kernel_answers() {
  const auto used = choose_kernels();
  if (!used.ok()) return fail(used.error());
  JsonArray tables;
  const FixedAnswer math = fixed_math_answer();
  bool is_right = math.is_right();
  for (const KernelTable* table : available_kernels()) {
    JsonArray answers;
    for (const FixedAnswer& answer : fixed_answers(*table)) {
      is_right = is_right && answer.is_right();
      answers.emplace_back(fixed_answer_json(answer));
    }
    tables.emplace_back(JsonObject{{"isa", table->name}, {"answers", std::move(answers)}});
  }
  print_json(JsonObject{{"right", is_right},
                        {"used", used.value()->name},
                        {"tables", std::move(tables)},
                        {"math", fixed_answer_json(math)}});
  return is_right ? 0 : kExitFailure;
}

// {"library", "found", "problem", "ports": [{"device", "port", "active", "ethernet", "addresses"}]}
int print_rdma_devices() {
  const VerbsReport verbs = report_verbs();
  JsonArray ports;
  for (const VerbsPortReport& port : verbs.ports) {
    ports.emplace_back(
        JsonObject{{"device", port.device},
                   {"port", port.port},
                   {"active", port.is_active},
                   {"ethernet", port.is_ethernet},
                   {"addresses", JsonArray(port.addresses.begin(), port.addresses.end())}});
  }
  print_json(JsonObject{{"library", verbs.library},
                        {"found", verbs.has_library},
                        {"problem", verbs.problem},
                        {"ports", std::move(ports)}});
  return 0;
}

Status add_first_mac(BugReport& report) {
  add_tools(report);
  const int failed = add_trials(
      {.program = TRY(own_program_file()),
       .trials = machine_trials(),
       .announce = [](const std::string& what) { show_progress(fmt::format("{} ...", what)); }},
      report);
  clear_progress();
  if (failed > 0) {
    report.missing.push_back(
        fmt::format("{} of the trials failed; trials.txt says which and how", failed));
  }
  return Ok{};
}

int bug_report(const BugReportFlags& flags) {
  if (flags.kernel_answers) return print_kernel_answers();
  if (flags.rdma_devices) return print_rdma_devices();
  const auto program = own_program_file();
  if (!program.ok()) return fail(program.error());
  const BugReportWish wish{
      .examination = {.http_port = static_cast<uint16_t>(flags.port), .program = program.value()},
      .hides_places = flags.first_mac};
  BugReport report = collect_bug_report(wish);
  if (flags.first_mac) {
    const Status added = add_first_mac(report);
    if (!added.ok()) return fail(added.error());
  }
  const std::string path = flags.file.empty() ? usual_name() : flags.file;
  const Status written = write_bug_report(report, path);
  if (!written.ok()) return fail(written.error());
  if (flags.json) {
    print_json(report_json(path, report));
    return 0;
  }
  print_line(fmt::format("{} holds:", path));
  for (const ReportFile& file : report.files) {
    print_line(
        fmt::format("  {:<24} {:>9}  {}", file.name, bytes_text(file.content.size()), file.what));
  }
  for (const std::string& sentence : report.missing) {
    print_line(fmt::format("  missing: {}", sentence));
  }
  print_line(
      fmt::format("It holds no keys, tokens, PINs or prompts{}. Nothing was sent: look at it, then "
                  "attach it to your report.",
                  flags.first_mac ? ", and no names or addresses of machines" : ""));
  return 0;
}

}  // namespace

void add_bug_report_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<BugReportFlags>();
  CLI::App* command =
      app.add_subcommand("bug-report", "write an archive for a bug report, without secrets");
  command->add_option("-o,--output", flags->file, "the archive to write, a .tar");
  command->add_option("--port", flags->port, "HTTP port of the node (default 8600)")
      ->check(CLI::Range(1, 65535));
  command->add_flag("--first-mac", flags->first_mac,
                    "also try the kernels, RDMA, links and a small benchmark (some minutes), and "
                    "hide names and addresses of machines");
  command->add_flag("--json", flags->json, "one JSON value");
  command->add_flag("--kernel-answers", flags->kernel_answers)->group("");
  command->add_flag("--rdma-devices", flags->rdma_devices)->group("");
  command->callback([flags, &chosen] { chosen = [flags] { return bug_report(*flags); }; });
}

}  // namespace lockstep

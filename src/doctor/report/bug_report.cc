#include "doctor/report/bug_report.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/files/mapped_file.h"
#include "base/files/private_file.h"
#include "base/machine/mac_system.h"
#include "base/machine/program_output.h"
#include "cluster/identity.h"
#include "doctor/checks/machine_text.h"
#include "doctor/doctor.h"
#include "doctor/mac/mac_settings.h"
#include "doctor/mac/mac_tools.h"
#include "doctor/report/tar_archive.h"
#include "net/http/http_client.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLogLines = "2000";
constexpr size_t kLogBytesMax = size_t{2} << 20;
constexpr const char* kFolder = "lockstep-bug-report/";

// With hides_places also the names of nodes in `status`, the node's answer to GET /cluster/status.
Redaction redaction_for(const BugReportWish& wish, const Json& status, const fs::path& home) {
  Redaction redaction = Redaction::of_machine(home);
  if (!wish.hides_places) return redaction;
  PlaceNames places = PlaceNames::of_machine();
  const Json* const nodes = find(status, "nodes");
  if (nodes != nullptr && nodes->is_array()) {
    for (const Json& node : nodes->get_array()) {
      const Json* const name = find(node, "name");
      if (name != nullptr && name->is_string()) places.add_host(name->get_string());
    }
  }
  redaction.hide_places(std::move(places));
  return redaction;
}

fs::path home_folder() {
  const auto home = Identity::default_folder();
  return home.ok() ? home.value() : fs::path();
}

void add_node(const BugReportWish& wish, const Result<Json>& status, const Redaction& redaction,
              BugReport& report) {
  const uint16_t http_port = wish.examination.http_port;
  if (!status.ok()) {
    report.missing.push_back(fmt::format("no node answers on port {}", http_port));
    return;
  }
  report.files.push_back({"status.json",
                          fmt::format("nodes, models, ranks and links, {} names and addresses",
                                      wish.hides_places ? "without" : "with"),
                          dump_json(redaction.json(status.value())) + "\n"});
  const auto metrics = call_http({.port = http_port, .target = "/metrics"});
  if (!metrics.ok() || metrics.value().status != 200) {
    report.missing.push_back("the node has no metrics");
    return;
  }
  report.files.push_back(
      {"metrics.txt", "what the node counts", redaction.text(metrics.value().body)});
}

void add_launchd_log(const Redaction& redaction, BugReport& report) {
  const auto log = launchd_log();
  if (!log.ok()) {
    report.missing.push_back(log.error().message);
    return;
  }
  report.files.push_back(
      {"log.txt", "the last lines that lockstep wrote under launchd", redaction.text(log.value())});
}

// Only our program's lines: systemd's own are useless, and a unit's child may be any program.
void add_journal_log(const Redaction& redaction, BugReport& report) {
  for (const char* const unit : {"--unit=lockstep", "--user-unit=lockstep"}) {
    const auto log = run_program({.program = "journalctl",
                                  .arguments = {unit, "_COMM=lockstep", "--no-pager", "--quiet",
                                                "--output=cat", "--lines", kLogLines},
                                  .output_bytes_max = kLogBytesMax});
    if (!log.ok() || log.value().status != 0 || log.value().output.empty()) continue;
    report.files.push_back({"log.txt", "the last lines that lockstep wrote to the journal",
                            redaction.text(log.value().output)});
    return;
  }
  report.missing.push_back("systemd has no log of a service lockstep that can be read");
}

void add_desired_state(const fs::path& home, const Redaction& redaction, BugReport& report) {
  auto desired = redacted_desired_state(home, redaction);
  if (!desired.ok()) {
    report.missing.push_back(desired.error().message);
    return;
  }
  report.files.push_back({"desired.json", "the models that should be loaded, without their folders",
                          std::move(desired.value())});
}

}  // namespace

Result<std::string> launchd_log() {
  for (const std::string& service : launchd_services()) {
    const auto printed = run_program({.program = "launchctl", .arguments = {"print", service}});
    if (!printed.ok() || printed.value().status != 0) continue;
    const std::string path = parse_launchd_service(printed.value().output).stderr_path;
    if (path.empty()) continue;
    auto log = run_program({.program = "tail",
                            .arguments = {"-n", kLogLines, path},
                            .output_bytes_max = kLogBytesMax});
    if (log.ok() && log.value().status == 0) return std::move(log.value().output);
  }
  return Error{ErrorCode::kNotFound, "launchd has no log of a service lockstep that can be read"};
}

Result<std::string> redacted_desired_state(const fs::path& home, const Redaction& redaction) {
  // The node's folder, or its subfolder for the state (cluster/state/desired_store.h).
  for (const fs::path& folder : {home, home / "cluster"}) {
    const auto file = read_small_file(folder / "desired.json");
    if (!file.ok()) continue;
    const std::string& text = file.value();
    const size_t line_end = text.find('\n');  // a line with the fingerprint, then JSON
    const auto json = parse_json(line_end == std::string::npos ? text : text.substr(line_end + 1));
    if (!json.ok()) return Error{ErrorCode::kCorrupt, "the desired state on the disk is damaged"};
    return dump_json(redaction.json(json.value())) + "\n";
  }
  return Error{ErrorCode::kNotFound, "this machine's disk has no desired state"};
}

BugReport collect_bug_report(const BugReportWish& wish) {
  const auto status = ask_node(wish.examination.http_port);
  const fs::path home = home_folder();
  BugReport report;
  report.redaction = redaction_for(wish, status.ok() ? status.value() : Json(), home);
  const Redaction& redaction = report.redaction;
  const Findings findings = examine(wish.examination, status);
  report.files.push_back({"about.txt", "version, build, system, processors, memory",
                          redaction.text(machine_text(SystemFiles()))});
  report.files.push_back({"doctor.txt", "what `lockstep doctor` finds",
                          redaction.text(findings_text(findings, Signs::kWords))});
  report.files.push_back({"doctor.json", "the same for programs",
                          dump_json(redaction.json(findings_json(findings))) + "\n"});
  add_node(wish, status, redaction, report);
  (kIsMac ? add_launchd_log : add_journal_log)(redaction, report);
  add_desired_state(home, redaction, report);
  return report;
}

Status write_bug_report(const BugReport& report, const fs::path& path) {
  const std::string extension = path.extension().string();
  if (extension == ".gz" || extension == ".tgz" || extension == ".zip" || extension == ".xz") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the archive is a plain .tar, not {}; name it FILE.tar", extension)};
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  TarArchive archive(std::chrono::duration_cast<std::chrono::seconds>(now).count());
  for (const ReportFile& file : report.files) TRY(archive.add(kFolder + file.name, file.content));
  if (!TRY(create_private_file(path, archive.bytes()))) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} already exists; name another file with -o", path.string())};
  }
  return Ok{};
}

}  // namespace lockstep

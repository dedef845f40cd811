// `lockstep bug-report`: one archive for diagnosing a fault, without secrets.
#include <fmt/core.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "doctor/doctor.h"
#include "doctor/report/bug_report.h"

namespace lockstep {
namespace {

struct BugReportFlags {
  int port = kUsualHttpPort;
  std::string file;  // empty: named after the time
  bool json = false;
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

int bug_report(const BugReportFlags& flags) {
  const BugReport report = collect_bug_report(static_cast<uint16_t>(flags.port));
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
        fmt::format("  {:<13} {:>9}  {}", file.name, bytes_text(file.content.size()), file.what));
  }
  for (const std::string& sentence : report.missing) {
    print_line(fmt::format("  missing: {}", sentence));
  }
  print_line(
      "It holds no keys, tokens, PINs or prompts. Nothing was sent: look at it, then attach it to "
      "your report.");
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
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return bug_report(*flags); }; });
}

}  // namespace lockstep

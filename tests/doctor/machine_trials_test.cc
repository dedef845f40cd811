// The trials of `bug-report --first-mac`, with a shell in the place of lockstep.
#include "doctor/report/machine_trials.h"

#include <algorithm>

#include "doctor/check_support.h"

using namespace lockstep;

namespace {

const ReportFile* file_of(const BugReport& report, const std::string& name) {
  const auto found = std::find_if(report.files.begin(), report.files.end(),
                                  [&](const ReportFile& file) { return file.name == name; });
  return found == report.files.end() ? nullptr : &*found;
}

// `sh -c SCRIPT` as a trial.
MachineTrial shell(const std::string& name, const std::string& script) {
  return {.name = name, .what = "a trial", .arguments = {"-c", script}};
}

BugReport run(std::vector<MachineTrial> trials, int failed_expected) {
  BugReport report;
  report.redaction.hide_places(PlaceNames());
  CHECK(add_trials({.program = "/bin/sh", .trials = std::move(trials), .announce = {}}, report) ==
        failed_expected);
  REQUIRE(file_of(report, "trials.txt") != nullptr);
  return report;
}

}  // namespace

TEST_CASE("a trial's value becomes a file without places, and its warnings a line") {
  const BugReport report =
      run({shell("one", "echo 'no RDMA at 10.0.0.2' >&2; echo '{\"peer\":\"10.0.0.2\"}'")}, 0);
  REQUIRE(file_of(report, "one.json") != nullptr);
  CHECK(file_of(report, "one.json")->content == "{\"peer\":\"[address]\"}\n");
  const std::string& lines = file_of(report, "trials.txt")->content;
  CHECK_MESSAGE(lines.find("ok; no RDMA at [address]\n") != std::string::npos, lines);
}

TEST_CASE("a trial that crashes, fails, prints nothing or hangs costs only its own result") {
  MachineTrial hanging = shell("hangs", "exec cat </dev/zero >/dev/null");
  hanging.timeout = std::chrono::seconds(1);
  const BugReport report = run(
      {shell("crashes", "kill -SEGV $$"), shell("fails", "echo 'lockstep: no memory' >&2; exit 1"),
       shell("is-silent", "true"), hanging, shell("works", "echo '{\"a\":1}'")},
      4);
  const std::string& lines = file_of(report, "trials.txt")->content;
  for (const char* line :
       {"FAILED: ended by signal 11", "FAILED: exit status 1; lockstep: no memory",
        "FAILED: exit status 0", "ok\n"}) {
    CHECK_MESSAGE(lines.find(line) != std::string::npos, line, lines);
  }
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 5);
  CHECK(file_of(report, "crashes.json") == nullptr);
  CHECK(file_of(report, "works.json") != nullptr);
}

TEST_CASE("a trial that failed after it printed its value keeps the value") {
  const BugReport report = run({shell("kernels", "echo '{\"right\":false}'; exit 1")}, 1);
  REQUIRE(file_of(report, "kernels.json") != nullptr);
  CHECK(file_of(report, "kernels.json")->content == "{\"right\":false}\n");
}

TEST_CASE("the trials of --first-mac have names of their own and name what they do") {
  std::vector<std::string> names;
  for (const MachineTrial& trial : machine_trials()) {
    names.push_back(trial.name);
    CHECK_FALSE(trial.what.empty());
    CHECK(trial.timeout <= std::chrono::minutes(3));
  }
  for (const char* needed : {"kernels", "rdma", "probe-shm", "probe-tcp", "bench-model"}) {
    CHECK(std::count(names.begin(), names.end(), needed) == 1);
  }
}

TEST_CASE("the system's tools are asked, and missing ones are named") {
  BugReport report;
  add_tools(report);
  REQUIRE(file_of(report, "tools.txt") != nullptr);
  const std::string& text = file_of(report, "tools.txt")->content;
  CHECK_MESSAGE(text.starts_with("$ uname -srm\n"), text);
  CHECK_MESSAGE(text.find("$ rdma_ctl status\n") != std::string::npos, text);
  // As the doctor asks them, but for those that show the environment of the service.
  CHECK_MESSAGE(text.find("$ system_profiler SPThunderboltDataType -json\n") != std::string::npos,
                text);
  CHECK(text.find("launchctl print") == std::string::npos);
}

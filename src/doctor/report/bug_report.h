// BugReport: data for diagnosing a fault of this machine, as files in one archive: versions,
// hardware, the doctor's findings, the status of the node on this machine, its log, the desired
// state. Secrets and users' texts are removed (doctor/report/redaction.h). Nothing is sent. Used by
// `lockstep bug-report`, which may add trials (doctor/report/machine_trials.h); any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/doctor.h"
#include "doctor/report/redaction.h"

namespace lockstep {

struct ReportFile {
  std::string name;     // "status.json"
  std::string what;     // one line for people
  std::string content;  // already redacted
};

struct BugReport {
  std::vector<ReportFile> files;
  std::vector<std::string> missing;  // sentences on data not available
  Redaction redaction;               // every file passes it
};

struct BugReportWish {
  Examination examination{};
  bool hides_places = false;  // names and addresses of machines
};

BugReport collect_bug_report(const BugReportWish& wish);

// $LOCKSTEP_HOME's desired state, redacted for a report. kNotFound, kCorrupt.
Result<std::string> redacted_desired_state(const std::filesystem::path& home,
                                           const Redaction& redaction);

// The last lines of the log of launchd's service lockstep, which `launchctl print` names.
// kNotFound: there is no such service, or no log.
Result<std::string> launchd_log();

// A plain tar archive that only the owner can read. kInvalidArgument if the file exists already, or
// its name promises another format.
Status write_bug_report(const BugReport& report, const std::filesystem::path& path);

}  // namespace lockstep

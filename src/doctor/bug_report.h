// BugReport: what helps to understand a fault of this machine, as files in one archive: versions,
// hardware, the doctor's findings, what the node on this machine says, its log, what should be
// loaded. Secrets and what users wrote are taken out (doctor/redaction.h). Nothing is sent. Used by
// `lockstep bug-report`; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "doctor/redaction.h"

namespace lockstep {

struct ReportFile {
  std::string name;     // "status.json"
  std::string what;     // one line for people
  std::string content;  // already redacted
};

struct BugReport {
  std::vector<ReportFile> files;
  std::vector<std::string> missing;  // sentences on what could not be had
};

BugReport collect_bug_report(uint16_t http_port);

// $LOCKSTEP_HOME's desired state as a report shows it. kNotFound, kCorrupt.
Result<std::string> redacted_desired_state(const std::filesystem::path& home,
                                           const Redaction& redaction);

// A plain tar archive that the owner alone can read. kInvalidArgument where there is such a file
// already, or where the name promises another format.
Status write_bug_report(const BugReport& report, const std::filesystem::path& path);

}  // namespace lockstep

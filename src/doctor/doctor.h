// The doctor: examines this machine and, if a node runs on it, its cluster, and says what is wrong
// and how to mend it. Changes nothing. Used by `lockstep doctor` and `lockstep bug-report`; takes a
// few seconds at most. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "doctor/facts/finding.h"
#include "json/json.h"

namespace lockstep {

inline constexpr uint16_t kUsualHttpPort = 8600;

struct Examination {
  uint16_t http_port = kUsualHttpPort;  // of the node on this machine
  std::string program{};  // starts lockstep, which tests the GPUs; empty: they are left out
};

// All findings: first what is ok, then notes, then problems, so that a terminal ends with them.
Findings examine(const Examination& examination);
// The same with the node's answer to GET /cluster/status, for the node itself.
Findings examine(const Examination& examination, const Result<Json>& status);
// Only the GPUs, in this process.
Findings examine_gpus();
// The same in a process of its own, which their drivers may crash.
Findings examine_gpus_apart(const std::string& program);

// The Thunderbolt cables between Macs, and the pairs without one, from a file of each: its output
// of `system_profiler SPThunderboltDataType -json`. Any system. kNotFound, kCorrupt.
Result<Findings> examine_cables(const std::vector<std::string>& files);

// The answer of the node on this machine to GET /cluster/status; an error without a node.
Result<Json> ask_node(uint16_t http_port);

size_t problem_count(const Findings& findings);
// {"findings": [{"check", "severity", "sentence", "mend"}], "problems": N}
Json findings_json(const Findings& findings);
// The findings of such a value. kCorrupt.
Result<Findings> read_findings(const Json& json);

enum class Signs { kWords, kSymbols };  // kSymbols need a terminal with UTF-8
// Lines for people; the last one is a summary.
std::string findings_text(const Findings& findings, Signs signs);

}  // namespace lockstep

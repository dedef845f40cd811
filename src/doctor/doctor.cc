#include "doctor/doctor.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>

#include "base/machine/program_output.h"
#include "doctor/checks/clock_checks.h"
#include "doctor/checks/cluster_checks.h"
#include "doctor/checks/firewall_checks.h"
#include "doctor/checks/gpu_checks.h"
#include "doctor/checks/mac_checks.h"
#include "doctor/checks/memory_checks.h"
#include "doctor/checks/network_checks.h"
#include "doctor/checks/processor_checks.h"
#include "doctor/checks/rdma_checks.h"
#include "doctor/checks/storage_checks.h"
#include "doctor/checks/thunderbolt_checks.h"
#include "net/http/http_client.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kAskTimeout{3};
constexpr std::chrono::seconds kGpuTimeout{15};  // drivers compile kernels that are new to them

struct SeverityText {
  std::string_view name;
  std::string_view word;  // all of equal width
  std::string_view symbol;
};

constexpr Severity kSeverities[] = {Severity::kOk, Severity::kNote, Severity::kProblem};

SeverityText severity_text(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return {"ok", "ok     ", "\u2713"};
    case Severity::kNote:
      return {"note", "note   ", "!"};
    case Severity::kProblem:
      return {"problem", "PROBLEM", "\u2717"};
  }
  return {};
}

void append(Findings& all, Findings more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

size_t count_of(const Findings& findings, Severity severity) {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [&](const Finding& one) { return one.severity == severity; }));
}

std::string counted(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count == 0 ? "no" : std::to_string(count), noun,
                     count == 1 ? "" : "s");
}

std::string active_device(const RdmaFacts& facts) {
  for (const VerbsPortReport& port : facts.verbs.ports) {
    if (port.is_active && !port.addresses.empty()) return port.device;
  }
  return "";
}

void sort_by_severity(Findings& findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
}

}  // namespace

Findings examine(const Examination& examination) {
  return examine(examination, ask_node(examination.http_port));
}

Findings examine(const Examination& examination, const Result<Json>& status) {
  const SystemFiles files;
  const MacAnswers mac = kIsMac ? ask_mac_tools() : MacAnswers();
  const auto interfaces = collect_interfaces(files, mac);
  Findings all = judge_processor(collect_processor(files));
  append(all, judge_memory(collect_memory(files)));
  append(all, judge_storage(collect_storage()));
  append(all, judge_clock(collect_clock()));
  if constexpr (kIsMac) {
    append(all, judge_mac(collect_mac(mac)));
    append(all, judge_thunderbolt(thunderbolt_facts(mac)));
  }
  const RdmaFacts rdma = collect_rdma(files, interfaces, mac);
  append(all, judge_rdma(rdma));
  append(all, judge_network(collect_network(files, {.interfaces = interfaces,
                                                    .http_port = examination.http_port,
                                                    .node_answers = status.ok()})));
  append(all, judge_firewall(collect_firewall(files, interfaces, mac)));
  if (!examination.program.empty()) append(all, examine_gpus_apart(examination.program));
  if (status.ok()) {
    ReportedCluster cluster = reported_cluster(status.value());
    cluster.own_rdma_device = active_device(rdma);
    append(all, judge_cluster(cluster));
  }
  sort_by_severity(all);
  return all;
}

Result<Findings> examine_cables(const std::vector<std::string>& files) {
  std::vector<MacPorts> machines;
  for (const std::string& file : files) machines.push_back(TRY(read_mac_ports(file)));
  Findings findings = judge_cables(machines);
  sort_by_severity(findings);
  return findings;
}

Result<Json> ask_node(uint16_t http_port) {
  const HttpAnswer answer =
      TRY(call_http({.port = http_port, .target = "/cluster/status", .timeout = kAskTimeout}));
  auto json = parse_json(answer.body);
  if (answer.status != 200 || !json.ok() || find(json.value(), "version") == nullptr) {
    return Error{ErrorCode::kCorrupt, "the program that answers there is not a lockstep node"};
  }
  return std::move(json.value());
}

Findings examine_gpus_apart(const std::string& program) {
  const auto answer = run_program(
      {.program = program, .arguments = {"doctor", "--gpus", "--json"}, .timeout = kGpuTimeout});
  if (!answer.ok()) return {unknown_gpus(answer.error().message)};
  const auto json = parse_json(answer.value().output);
  auto findings = json.ok() ? read_findings(json.value()) : json.error();
  if (findings.ok()) return std::move(findings.value());
  const int signal = answer.value().signal(), status = answer.value().status;
  return {unknown_gpus(
      signal > 0 ? fmt::format("their test was ended by signal {}, so a driver crashes", signal)
                 : fmt::format("their test ended with status {}", status))};
}

Findings examine_gpus() {
  return judge_gpus(collect_gpus());
}

size_t problem_count(const Findings& findings) {
  return count_of(findings, Severity::kProblem);
}

Json findings_json(const Findings& findings) {
  JsonArray list;
  for (const Finding& finding : findings) {
    list.push_back(JsonObject{{"check", finding.check},
                              {"severity", severity_text(finding.severity).name},
                              {"sentence", finding.sentence},
                              {"mend", finding.mend}});
  }
  return JsonObject{{"findings", std::move(list)}, {"problems", problem_count(findings)}};
}

Result<Findings> read_findings(const Json& json) {
  const Error corrupt{ErrorCode::kCorrupt, "these are no findings"};
  const Json* list = find(json, "findings");
  if (list == nullptr || !list->is_array()) return corrupt;
  Findings findings;
  for (const Json& one : list->get_array()) {
    const auto text = [&](std::string_view name) -> Result<std::string> {
      return TRY(get_string(one, name)).value_or("");
    };
    const std::string name = TRY(text("severity"));
    const auto severity =
        std::find_if(std::begin(kSeverities), std::end(kSeverities),
                     [&](Severity some) { return severity_text(some).name == name; });
    Finding& finding = findings.emplace_back();
    finding.check = TRY(text("check"));
    finding.sentence = TRY(text("sentence"));
    finding.mend = TRY(text("mend"));
    if (severity == std::end(kSeverities) || finding.check.empty()) return corrupt;
    finding.severity = *severity;
  }
  return findings;
}

std::string findings_text(const Findings& findings, Signs signs) {
  std::string text;
  const std::string indent(signs == Signs::kSymbols ? 3 : 9, ' ');
  for (const Finding& finding : findings) {
    const SeverityText severity = severity_text(finding.severity);
    text += fmt::format("{}  {}\n", signs == Signs::kSymbols ? severity.symbol : severity.word,
                        finding.sentence);
    if (!finding.mend.empty()) text += fmt::format("{}{}\n", indent, finding.mend);
  }
  return text + fmt::format("{}, {}\n", counted(problem_count(findings), "problem"),
                            counted(count_of(findings, Severity::kNote), "note"));
}

}  // namespace lockstep

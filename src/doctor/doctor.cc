#include "doctor/doctor.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <string_view>

#include "doctor/checks/clock_checks.h"
#include "doctor/checks/cluster_checks.h"
#include "doctor/checks/firewall_checks.h"
#include "doctor/checks/memory_checks.h"
#include "doctor/checks/network_checks.h"
#include "doctor/checks/processor_checks.h"
#include "doctor/checks/rdma_checks.h"
#include "doctor/checks/storage_checks.h"
#include "net/http/http_client.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kAskTimeout{3};

struct SeverityText {
  std::string_view name;
  std::string_view word;  // all of equal width
  std::string_view symbol;
};

SeverityText text_of(Severity severity) {
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

}  // namespace

Findings examine(uint16_t http_port) {
  const SystemFiles files;
  const auto interfaces = collect_interfaces(files);
  const auto status = ask_node(http_port);
  Findings all = judge_processor(collect_processor(files));
  append(all, judge_memory(collect_memory(files)));
  append(all, judge_storage(collect_storage()));
  append(all, judge_clock(collect_clock()));
  append(all, judge_rdma(collect_rdma(files, interfaces)));
  append(
      all,
      judge_network(collect_network(
          files, {.interfaces = interfaces, .http_port = http_port, .node_answers = status.ok()})));
  append(all, judge_firewall(collect_firewall(files, interfaces)));
  if (status.ok()) append(all, judge_cluster(reported_cluster(status.value())));
  std::stable_sort(all.begin(), all.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return all;
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

size_t problem_count(const Findings& findings) {
  return count_of(findings, Severity::kProblem);
}

Json findings_json(const Findings& findings) {
  JsonArray list;
  for (const Finding& finding : findings) {
    list.push_back(JsonObject{{"check", finding.check},
                              {"severity", text_of(finding.severity).name},
                              {"sentence", finding.sentence},
                              {"mend", finding.mend}});
  }
  return JsonObject{{"findings", std::move(list)}, {"problems", problem_count(findings)}};
}

std::string findings_text(const Findings& findings, Signs signs) {
  std::string text;
  const std::string indent(signs == Signs::kSymbols ? 3 : 9, ' ');
  for (const Finding& finding : findings) {
    const SeverityText severity = text_of(finding.severity);
    text += fmt::format("{}  {}\n", signs == Signs::kSymbols ? severity.symbol : severity.word,
                        finding.sentence);
    if (!finding.mend.empty()) text += fmt::format("{}{}\n", indent, finding.mend);
  }
  return text + fmt::format("{}, {}\n", counted(problem_count(findings), "problem"),
                            counted(count_of(findings, Severity::kNote), "note"));
}

}  // namespace lockstep

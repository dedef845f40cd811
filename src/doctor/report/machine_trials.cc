#include "doctor/report/machine_trials.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/machine/program_output.h"
#include "doctor/mac/mac_tools.h"
#include "json/json.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

constexpr size_t kOutputBytesMax = size_t{1} << 20;
constexpr size_t kSentenceBytesMax = 500;

// Sentences on one line, cut to a length that a person reads.
std::string in_one_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string line(text.substr(0, kSentenceBytesMax));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

struct TrialResult {
  std::string outcome;  // begins with "ok" or says how it failed
  bool failed = false;
  Json json;  // null if none was printed
};

// The value is the last line; lines before it are warnings, such as that RDMA fell back to TCP.
TrialResult judge_trial(const ProgramAnswer& answer) {
  std::string_view said = answer.output;
  while (said.ends_with('\n')) said.remove_suffix(1);
  const size_t line = said.rfind('\n');
  const std::string_view last = line == std::string_view::npos ? said : said.substr(line + 1);
  auto json = parse_json(last);
  if (json.ok()) said.remove_suffix(last.size());
  TrialResult result{.json = json.ok() ? std::move(json.value()) : Json()};
  result.failed = answer.status != 0 || result.json.is_null();
  if (answer.signal() > 0) {
    result.outcome = fmt::format("FAILED: ended by signal {}", answer.signal());
  } else if (result.failed) {
    result.outcome = fmt::format("FAILED: exit status {}", answer.status);
  } else {
    result.outcome = "ok";
  }
  if (!said.empty()) result.outcome += "; " + in_one_line(said);
  return result;
}

TrialResult run_trial(const std::string& program, const MachineTrial& trial) {
  const auto answer = run_program({.program = program,
                                   .arguments = trial.arguments,
                                   .timeout = trial.timeout,
                                   .output_bytes_max = kOutputBytesMax,
                                   .with_errors = true});
  if (answer.ok()) return judge_trial(answer.value());
  return {.outcome = fmt::format("FAILED: {}", answer.error().message), .failed = true, .json = {}};
}

// Names the machine, then asks whatever the doctor asks: its parsers were written without a Mac.
std::vector<Words> reported_tools() {
  std::vector<Words> tools{
      {"uname", "-srm"},
      {"sw_vers"},
      {"sysctl", "hw.model", "hw.memsize", "hw.perflevel0.logicalcpu", "hw.perflevel1.logicalcpu",
       "machdep.cpu.brand_string", "iogpu.wired_limit_mb", "kern.maxfilesperproc"},
      {"ibv_devices"},
      {"ibv_devinfo"}};
  for (const MacTool& tool : mac_tools()) {
    if (tool.shows_environment) continue;
    Words& words = tools.emplace_back(Words{tool.program});
    words.insert(words.end(), tool.arguments.begin(), tool.arguments.end());
  }
  return tools;
}

std::string command_text(const Words& words) {
  std::string text = "$";
  for (const std::string& word : words) text += " " + word;
  return text;
}

}  // namespace

std::vector<MachineTrial> machine_trials() {
  using std::chrono::minutes;
  const auto probe = [](Words link) {
    Words arguments{"probe", "--ranks", "2", "--json", "--link"};
    arguments.insert(arguments.end(), link.begin(), link.end());
    return arguments;
  };
  return {
      {"kernels",
       "kernels: the fixed answers of every instruction set here",
       {"bug-report", "--kernel-answers"}},
      {"rdma", "RDMA: the library, its devices and their ports", {"bug-report", "--rdma-devices"}},
      {"probe-shm", "links: shared memory", probe({"shm"})},
      {"probe-tcp", "links: TCP over loopback", probe({"tcp"})},
      {"probe-tcp-encrypted", "links: TCP over loopback, encrypted", probe({"tcp", "--encrypt"})},
      {"probe-verbs", "links: RDMA, or TCP where there is none", probe({"verbs"})},
      {"bench-collective",
       "an all-reduce of two ranks over shared memory",
       {"bench", "collective", "--rounds", "1000", "--runs", "3", "--json"}},
      {"bench-model",
       "two layers of qwen3-0.6b with 4 bits, random weights",
       {"bench", "--shape", "qwen3-0.6b", "--bits", "4", "--layers", "2", "-p", "64", "-n", "16",
        "-r", "1", "--json"},
       minutes(3)},
      {"bench-ranks",
       "the same over two ranks",
       {"bench", "--shape", "qwen3-0.6b", "--bits", "4", "--layers", "2", "-p", "64", "-n", "16",
        "-r", "1", "--ranks", "2", "--json"},
       minutes(3)}};
}

int add_trials(const TrialsWish& wish, BugReport& report) {
  const Redaction& redaction = report.redaction;
  int failed = 0;
  std::string lines;
  for (const MachineTrial& trial : wish.trials) {
    if (wish.announce) wish.announce(trial.what);
    const auto start = Clock::now();
    const TrialResult result = run_trial(wish.program, trial);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    lines +=
        fmt::format("{:<20} {:>6.1f} s  {}\n", trial.name, seconds, redaction.text(result.outcome));
    failed += result.failed ? 1 : 0;
    if (result.json.is_null()) continue;
    report.files.push_back(
        {trial.name + ".json", trial.what, dump_json(redaction.json(result.json)) + "\n"});
  }
  report.files.push_back({"trials.txt",
                          fmt::format("how {} trials went: {} failed", wish.trials.size(), failed),
                          lines});
  return failed;
}

void add_tools(BugReport& report) {
  constexpr std::chrono::seconds kToolTimeout{20};  // system_profiler takes its time
  std::string text;
  for (const Words& words : reported_tools()) {
    const auto answer = run_program({.program = words.front(),
                                     .arguments = {words.begin() + 1, words.end()},
                                     .timeout = kToolTimeout});
    text += command_text(words) + "\n";
    text += answer.ok() ? answer.value().output : answer.error().message + "\n";
    if (answer.ok()) text += fmt::format("(exit status {})\n", answer.value().status);
  }
  report.files.push_back({"tools.txt", "what the system's tools say of its ports and devices",
                          report.redaction.text(text)});
}

}  // namespace lockstep

// fault_matrix [--rounds N] [--seed S] [--link shm|tcp|verbs] [--fault NAME] [--phases all|one]
//              [--rdma played|guest]
// Runs every cell N times and prints the table; "one" takes one phase for each fault, by the seed.
// RDMA is played by tests/fake_verbs, or is that of tools/rdma-vm's emulated machine. Exit status 1
// with any finding.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "node/fault_matrix.h"
#include "transport/link_kind.h"

namespace lockstep {
namespace {

struct Options {
  int rounds = 2;
  uint64_t seed = 1;
  std::string link;   // empty: all
  std::string fault;  // empty: all
  bool one_phase = false;
  bool is_guest = false;
};

// Everything takes longer in an emulated machine.
constexpr std::chrono::seconds kGuestReport{20};
constexpr std::chrono::seconds kGuestHang{120};
constexpr int kGuestPromptTokens = 40;
constexpr int kGuestAnswerTokens = 60;  // taking the network down takes a second

constexpr const char* kUsage =
    "fault_matrix [--rounds N] [--seed N] [--link shm|tcp|verbs] [--fault NAME] [--rdma guest] "
    "[--phases one]\n";

bool take(Options& options, std::string_view name, const char* value) {
  if (name == "--rounds") {
    options.rounds = std::atoi(value);
  } else if (name == "--seed") {
    options.seed = std::strtoull(value, nullptr, 10);
  } else if (name == "--link") {
    options.link = value;
  } else if (name == "--fault") {
    options.fault = value;
  } else if (name == "--rdma") {
    options.is_guest = std::string_view(value) == "guest";
  } else if (name == "--phases") {
    options.one_phase = std::string_view(value) == "one";
  } else {
    return false;
  }
  return true;
}

// The whole matrix takes an hour: it runs only if all options are known.
Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && take(options, argv[i], argv[i + 1])) continue;
    fmt::print(stderr, "{}", kUsage);
    std::exit(2);
  }
  return options;
}

// The median and the maximum.
std::string figures(std::vector<double> times) {
  if (times.empty()) return fmt::format("{:>15}", "-");
  std::sort(times.begin(), times.end());
  return fmt::format("{:>7.0f} {:>7.0f}", times[times.size() / 2], times.back());
}

void print_row(const Cell& cell, const std::string& skipped, const CellResult& result) {
  fmt::print("{:5} {:16} {:8} ", link_kind_name(cell.link), fault_name(cell.fault),
             phase_name(cell.phase));
  if (!skipped.empty()) {
    fmt::print("{}\n", skipped);
    return;
  }
  fmt::print("{:>6} {:>6}  {}  {}  {}\n", result.rounds, result.broken, figures(result.error_ms),
             figures(result.recovery_ms), result.last_error.substr(0, 90));
  for (const std::string& finding : result.findings) fmt::print("  FINDING: {}\n", finding);
}

// A phase that can occur with this fault, if there is one.
Phase choose_phase(Fault fault, LinkKind link, uint64_t seed, const FaultStage& stage) {
  const size_t first = std::mt19937_64(seed * 64 + static_cast<size_t>(fault) * std::size(kLinks) +
                                       static_cast<size_t>(link))() %
                       std::size(kPhases);
  for (size_t i = 0; i < std::size(kPhases); ++i) {
    const Phase phase = kPhases[(first + i) % std::size(kPhases)];
    if (reason_to_skip({fault, phase, link}, stage).empty()) return phase;
  }
  return kPhases[first];
}

int run_matrix(const Options& options) {
  FaultStage stage;
  if (options.is_guest) {
    stage.network.use_guest_ports();
    stage.has_rdma = true;
    stage.report = kGuestReport;
    stage.hang = kGuestHang;
    stage.prompt_tokens = kGuestPromptTokens;
    stage.answer_tokens = kGuestAnswerTokens;
  } else {
    stage.network.enter();
    stage.has_rdma = stage.rdma.play();
  }
  fmt::print("{:5} {:16} {:8} {:>6} {:>6}  {:>15}  {:>15}  {}\n", "link", "fault", "phase",
             "rounds", "broken", "error ms 50/max", "again ms 50/max", "the last error");
  size_t findings = 0, cells = 0;
  for (const LinkKind link : kLinks) {
    if (!options.link.empty() && options.link != link_kind_name(link)) continue;
    if (link == LinkKind::kVerbs && !stage.has_rdma) {
      fmt::print("verbs: {}\n", reason_to_skip({Fault::kKill, Phase::kLoad, link}, stage));
      continue;
    }
    FaultBench bench(link, stage, options.seed);
    if (const Status started = bench.start(); !started.ok()) {
      fmt::print("{}\n", started.error().message);
      return 1;
    }
    for (const Fault fault : kFaults) {
      if (!options.fault.empty() && options.fault != fault_name(fault)) continue;
      const Phase chosen = choose_phase(fault, link, options.seed, stage);
      for (const Phase phase : kPhases) {
        if (options.one_phase && phase != chosen) continue;
        const Cell cell{fault, phase, link};
        const std::string skipped = reason_to_skip(cell, stage);
        const CellResult result = skipped.empty() ? bench.run(cell, options.rounds) : CellResult{};
        print_row(cell, skipped, result);
        std::fflush(stdout);
        std::fflush(stdout);
        findings += result.findings.size();
        cells += skipped.empty() ? 1 : 0;
      }
    }
  }
  fmt::print("{} cells, {} findings\n", cells, findings);
  return findings == 0 && cells > 0 ? 0 : 1;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  return lockstep::run_matrix(lockstep::parse(argc, argv));
}

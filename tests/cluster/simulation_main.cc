// cluster_simulation: runs many seeds of the simulated cluster on several threads and prints the
// command that reproduces a failing one. Exit status 1 if one fails.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/machine/machine.h"
#include "cluster/simulation.h"

using namespace lockstep;

namespace {

constexpr int kFailuresPrinted = 10;

struct Arguments {
  uint64_t first = 1;
  uint64_t last = 200;
  int64_t minutes = 10;
  int threads = 1;
  bool prints = false;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments{.threads = available_core_count()};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--print") {
      arguments.prints = true;
      continue;
    }
    if (i + 1 == argc) return std::nullopt;
    const std::string value = argv[++i];
    if (name == "--seeds") {
      const size_t dots = value.find("..");
      arguments.first = std::strtoull(value.c_str(), nullptr, 10);
      arguments.last = dots == std::string::npos
                           ? arguments.first
                           : std::strtoull(value.c_str() + dots + 2, nullptr, 10);
    } else if (name == "--minutes") {
      arguments.minutes = std::strtoll(value.c_str(), nullptr, 10);
    } else if (name == "--threads") {
      arguments.threads = std::atoi(value.c_str());
    } else {
      return std::nullopt;
    }
  }
  const bool is_sane = arguments.first > 0 && arguments.first <= arguments.last &&
                       arguments.minutes >= 1 && arguments.threads >= 1;
  return is_sane ? std::optional(arguments) : std::nullopt;
}

void add(SimulationResult& total, const SimulationResult& result) {
  total.events += result.events;
  total.crashes += result.crashes;
  total.disks_lost += result.disks_lost;
  total.writes += result.writes;
  total.placements += result.placements;
  total.calm_checks += result.calm_checks;
  total.ready_checks += result.ready_checks;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (!arguments) {
    fmt::print(stderr,
               "usage: cluster_simulation [--seeds A..B] [--minutes M] [--threads N] [--print]\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next = arguments->first;
  std::mutex mutex;  // guards the following
  SimulationResult total;
  int failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < (arguments->prints ? 1 : arguments->threads); ++i) {
    threads.emplace_back([&] {
      for (uint64_t seed = next++; seed <= arguments->last; seed = next++) {
        const auto result =
            simulate({.seed = seed, .minutes = arguments->minutes, .prints = arguments->prints});
        const std::lock_guard lock(mutex);
        add(total, result);
        if (!result.failure || ++failures > kFailuresPrinted) continue;
        fmt::print("{}\n  cluster_simulation --seeds {} --minutes {} --print\n", *result.failure,
                   seed, arguments->minutes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print(
      "{} seeds of {} minutes: {} failed; {} events, {} crashes, {} disks lost, {} writes, {} "
      "parts "
      "started, {} calm times checked, {} groups ready in them; {:.1f} s\n",
      arguments->last - arguments->first + 1, arguments->minutes, failures, total.events,
      total.crashes, total.disks_lost, total.writes, total.placements, total.calm_checks,
      total.ready_checks, took.count());
  return failures == 0 ? 0 : 1;
}

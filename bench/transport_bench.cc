// All-reduce over each kind of link, 8 B to 1 MiB, with threads of one process as ranks.
//   transport_bench [--ranks N] [--rounds R] [--json]
#include <pthread.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#include "collective/group/bench.h"
#include "transport/form/local_links.h"

namespace lockstep {
namespace {

constexpr size_t kSizes[] = {8,         64,        1024,       4 * 1024,   8 * 1024,
                             16 * 1024, 64 * 1024, 256 * 1024, 1024 * 1024};

void pin_to_processor(int processor) {
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
#else
  static_cast<void>(processor);
#endif
}

// The times of the slowest rank.
Result<CollectiveTimes> measure(LinkKind kind, int ranks, size_t bytes, int rounds) {
  LocalLinks links = TRY(open_local_links({.kind = kind}, ranks));
  std::vector<Result<CollectiveTimes>> times(links.size(), CollectiveTimes{});
  std::vector<std::thread> threads;
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      pin_to_processor(rank % processors);
      const auto index = static_cast<size_t>(rank);
      Group group({.rank = rank, .links = std::move(links[index])});
      times[index] = bench_all_reduce(group, bytes, rounds);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CollectiveTimes slowest;
  for (auto& time : times) {
    const CollectiveTimes one = TRY(std::move(time));
    if (one.p50_us > slowest.p50_us) slowest = one;
  }
  return slowest;
}

int run(int ranks, int rounds, bool is_json) {
  if (!is_json) std::printf("link    bytes    min us    p50 us    p99 us\n");
  for (const LinkKind kind : {LinkKind::kShm, LinkKind::kTcp}) {
    for (const size_t bytes : kSizes) {
      const int size_rounds = bytes >= 64 * 1024 ? std::max(1, rounds / 10) : rounds;
      auto times = measure(kind, ranks, bytes, size_rounds);
      if (!times.ok()) {
        std::fprintf(stderr, "%s\n", times.error().message.c_str());
        return 1;
      }
      const char* format = is_json ? "{\"link\": \"%s\", \"bytes\": %zu, \"min_us\": %.2f, "
                                     "\"p50_us\": %.2f, \"p99_us\": %.2f}\n"
                                   : "%-4s %8zu %9.2f %9.2f %9.2f\n";
      const CollectiveTimes& t = times.value();
      std::printf(format, link_kind_name(kind).data(), bytes, t.min_us, t.p50_us, t.p99_us);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  CLI::App app("all-reduce over shared memory and TCP with threads as ranks");
  int ranks = 2, rounds = 20'000;
  bool is_json = false;
  app.add_option("--ranks", ranks)->check(CLI::Range(1, 64));
  app.add_option("--rounds", rounds)->check(CLI::PositiveNumber);
  app.add_flag("--json", is_json);
  CLI11_PARSE(app, argc, argv);
  return lockstep::run(ranks, rounds, is_json);
}

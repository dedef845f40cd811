// `lockstep probe`: the speed of the links between ranks, as a table or JSON.
#include <fmt/core.h>

#include <memory>

#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "json/json.h"
#include "node/network/link_probe.h"

namespace lockstep {
namespace {

struct ProbeFlags {
  MeasuringOptions options;
  bool json = false;
};

Json pairs_json(const ProbeFlags& flags, const std::vector<PairTimes>& pairs) {
  JsonArray list;
  for (const PairTimes& pair : pairs) {
    list.emplace_back(JsonObject{{"a", pair.a},
                                 {"b", pair.b},
                                 {"p50_us", pair.p50_us},
                                 {"p99_us", pair.p99_us},
                                 {"p50_16k_us", pair.p50_16k_us},
                                 {"p99_16k_us", pair.p99_16k_us},
                                 {"gbit_s", pair.gbit_s}});
  }
  return Json(JsonObject{{"ranks", flags.options.ranks},
                         {"link", link_kind_name(flags.options.link.kind)},
                         {"encrypt", flags.options.link.encrypts},
                         {"rails", flags.options.link.rails},
                         {"pairs", std::move(list)}});
}

void print_pair_table(const std::vector<PairTimes>& pairs) {
  print_line("pair         8 B p50    p99    16 KiB p50    p99 us    bandwidth");
  for (const PairTimes& pair : pairs) {
    print_line(fmt::format("{:>2} - {:<2} {:>12.2f} {:>6.2f} {:>13.2f} {:>6.2f} {:>8.3g} Gbit/s",
                           pair.a, pair.b, pair.p50_us, pair.p99_us, pair.p50_16k_us,
                           pair.p99_16k_us, pair.gbit_s));
  }
}

int probe(const ProbeFlags& flags) {
  if (const Status link = check_link_options(flags.options.link); !link.ok()) {
    return fail(link.error());
  }
  const auto pairs = probe_processes(flags.options);
  if (!pairs.ok()) return fail(pairs.error());
  flags.json ? print_json(pairs_json(flags, pairs.value())) : print_pair_table(pairs.value());
  return 0;
}

}  // namespace

void add_probe_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ProbeFlags>();
  CLI::App* command =
      app.add_subcommand("probe", "measure the latency and bandwidth between all pairs of ranks");
  command->add_option("--ranks", flags->options.ranks, "worker processes (default 2)")
      ->check(CLI::Range(2, GroupSupervisor::kRanksMax));
  add_link_flags(*command, flags->options.link);
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] { chosen = [flags] { return probe(*flags); }; });
}

}  // namespace lockstep

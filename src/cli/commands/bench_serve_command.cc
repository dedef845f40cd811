// The flags of `lockstep bench serve`.
#include <memory>

#include "cli/bench/bench_serve.h"
#include "cli/client/node_client.h"
#include "cli/commands/commands.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

constexpr int64_t kRequestsDefault = 100;
constexpr int kConcurrencyDefault = 8;

struct BenchServeCommandFlags {
  BenchServeFlags bench;
  bool json = false;
};

int run_bench_serve_command(const BenchServeCommandFlags& flags) {
  const auto result = bench_serve(flags.bench);
  if (!result.ok()) return fail(result.error());
  flags.json ? print_json(result.value()) : print_bench_serve(result.value());
  return number_in(result.value(), "completed") > 0 ? 0 : kExitFailure;
}

void add_load_flags(CLI::App& command, BenchServeFlags& bench) {
  LoadOptions& load = bench.load;
  command
      .add_option("--rate", load.shape.rate,
                  "requests per second, at random times (default: as --concurrency allows)")
      ->check(CLI::Range(0.001, 100'000.0));
  command
      .add_option("--concurrency", load.concurrency,
                  "requests in flight at once (default 8; with --rate: no limit)")
      ->check(CLI::Range(1, LoadOptions::kRunningMax));
  command.add_option("--requests", load.requests, "how many (default 100, without --duration)")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}));
  command.add_option("--duration", load.duration_s, "seconds during which requests start")
      ->check(CLI::Range(0.001, 1e7));
  command.add_option("--prompt-tokens", bench.prompt_tokens,
                     "of a request, e.g. 128 (default) or 64-256");
  command.add_option("--new-tokens", bench.new_tokens, "the same of answers (default 64)");
  command
      .add_option("--shared-prefix", load.shape.shared_prefix,
                  "the fraction of each prompt that is a shared prefix (default 0)")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--prefixes", load.shape.prefix_count, "number of different prefixes (default 1)")
      ->check(CLI::Range(1, 1'000'000));
  command.add_option("--seed", load.shape.seed, "of times, lengths and prompts (default 1)");
  command.add_option("--timeout", bench.timeout_s, "seconds for one request (default 600)")
      ->check(CLI::Range(0.001, 1e6));
  const auto limit = [&command](const char* name, double& limit_ms, const char* what) {
    command.add_option(name, limit_ms, what)->check(CLI::Range(0.001, 1e9));
  };
  limit("--first-token-ms", load.limits.first_token_ms,
        "goodput: count only requests with the first token within this time");
  limit("--token-ms", load.limits.token_ms, "goodput: and with at most this mean time per token");
  limit("--whole-ms", load.limits.whole_ms, "goodput: and finished within this time");
}

}  // namespace

void add_bench_serve_command(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<BenchServeCommandFlags>();
  BenchServeFlags& options = flags->bench;
  CLI::App* command =
      bench.add_subcommand("serve", "measure what users of a server see under load");
  CLI::Option* url = command->add_option(
      "--url", options.url, "of an OpenAI-compatible server, e.g. http://localhost:8600");
  CLI::Option* model = command->add_option(
      "MODEL", options.group.model, "without --url: a node of this model is started for the test");
  url->excludes(model);
  command->add_option("--model", options.model,
                      "its name on the server (default: the first that is listed)");
  command->add_option("--api", options.api, "completions (default: prompts are tokens) or chat")
      ->check(CLI::IsMember({"completions", "chat"}));
  command->add_option("--api-key", options.api_key, "the API key that the server needs")
      ->envname("LOCKSTEP_API_KEY");
  command->add_option("--temperature", options.temperature, "0 (default) to 2")
      ->check(CLI::Range(0.0, 2.0));
  add_load_flags(*command, options);
  add_group_flags(*command, options.group);
  add_load_limits(*command, options.group);
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] {
    BenchServeFlags& bench = flags->bench;
    if (bench.url.empty() && bench.group.model.empty()) {
      throw CLI::RequiredError("one of MODEL and --url");
    }
    LoadOptions& load = bench.load;
    if (load.requests == 0 && load.duration_s == 0) load.requests = kRequestsDefault;
    if (load.shape.rate == 0 && load.concurrency == 0) load.concurrency = kConcurrencyDefault;
    chosen = [flags] { return run_bench_serve_command(*flags); };
  });
}

}  // namespace lockstep

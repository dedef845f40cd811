// `lockstep bench MODEL` and `lockstep bench collective`: how fast this machine is, as a table or
// JSON.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/machine.h"
#include "cli/commands.h"
#include "cli/generate.h"
#include "cli/group_flags.h"
#include "cli/output.h"
#include "device/read_probe.h"
#include "node/collective_bench.h"

namespace lockstep {
namespace {

constexpr int kProbeRounds = 3;

struct ModelFlags {
  GroupFlags group;
  int prompt_tokens = 512;
  int new_tokens = 128;
  int repetitions = 3;
  bool json = false;
};

struct CollectiveFlags {
  CollectiveBenchOptions options;
  int runs = 5;
  bool encrypt = false;
  bool json = false;
};

struct Speed {
  double prefill_tok_s = 0;
  double decode_tok_s = 0;
};

// A prompt of tokens that every vocabulary has.
std::vector<int32_t> any_prompt(int tokens, int vocab_size) {
  std::vector<int32_t> prompt;
  prompt.reserve(static_cast<size_t>(tokens));
  for (int i = 0; i < tokens; ++i) prompt.push_back((i * 7 + 3) % vocab_size);
  return prompt;
}

// From the request to its last token. What lies between two tokens says nothing here: they may
// reach us together.
Result<double> seconds_of(ModelService& model, std::vector<int32_t> prompt, int new_tokens) {
  const Generated done =
      TRY(generate_and_wait(model, {.prompt = std::move(prompt), .max_tokens = new_tokens}));
  return seconds_between(done.started, done.last_token);
}

Result<Speed> measure(ModelService& model, const ModelFlags& flags, int vocab_size) {
  constexpr double kLeast = 1e-9;  // a clock may stand still
  const double prompt = TRY(seconds_of(model, any_prompt(flags.prompt_tokens, vocab_size), 1));
  const double one = TRY(seconds_of(model, any_prompt(1, vocab_size), 1));
  const double many = TRY(seconds_of(model, any_prompt(1, vocab_size), flags.new_tokens + 1));
  return Speed{flags.prompt_tokens / std::max(prompt, kLeast),
               flags.new_tokens / std::max(many - one, kLeast)};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<Json> bench_model(ModelFlags flags) {
  const LocalGroupOptions options = TRY(group_options(flags.group));
  const int threads =
      options.threads > 0 ? options.threads : std::max(1, available_core_count() / options.ranks);
  double read_gb_s = TRY(probe_read_gb_s(threads * options.ranks, kProbeRounds));
  const auto model = TRY(start_group(options));
  const ModelStatus status = model->status();
  const int prompt_asked = flags.prompt_tokens, new_asked = flags.new_tokens;
  flags.prompt_tokens = std::min(flags.prompt_tokens, status.context);
  flags.new_tokens = std::min(flags.new_tokens, status.context - 1);
  if (flags.prompt_tokens < prompt_asked || flags.new_tokens < new_asked) {
    fmt::print(stderr, "The context holds {} positions: measuring {} prompt and {} new tokens.\n",
               status.context, flags.prompt_tokens, flags.new_tokens);
  }
  std::vector<double> prefill, decode;
  TRY(measure(*model, flags, status.vocab_size));  // warm-up
  for (int i = 0; i < flags.repetitions; ++i) {
    show_progress(fmt::format("round {} of {}", i + 1, flags.repetitions));
    const Speed speed = TRY(measure(*model, flags, status.vocab_size));
    prefill.push_back(speed.prefill_tok_s);
    decode.push_back(speed.decode_tok_s);
  }
  clear_progress();
  read_gb_s = std::max(read_gb_s, TRY(probe_read_gb_s(threads * options.ranks, kProbeRounds)));
  uint64_t bytes_per_token = 0;
  for (const RankStatus& rank : status.ranks) bytes_per_token += rank.token_bytes;
  return Json(
      JsonObject{{"model", status.name},
                 {"ranks", options.ranks},
                 {"threads", threads},
                 {"link", options.link},
                 {"prompt_tokens", flags.prompt_tokens},
                 {"new_tokens", flags.new_tokens},
                 {"prefill_tok_s", median(prefill)},
                 {"decode_tok_s", median(decode)},
                 {"read_gb_s", read_gb_s},
                 {"decode_gb_s", static_cast<double>(bytes_per_token) * median(decode) / 1e9},
                 {"weight_bytes_per_token", bytes_per_token}});
}

void print_table(const Json& result) {
  const auto number = [&](std::string_view key) { return find(result, key)->to_number<double>(); };
  print_line(fmt::format("{}, {} ranks x {} threads, {}",
                         find(result, "model")->as_string().c_str(), number("ranks"),
                         number("threads"), find(result, "link")->as_string().c_str()));
  print_line(fmt::format("prefill {:>6} tokens  {:>10.1f} tok/s", number("prompt_tokens"),
                         number("prefill_tok_s")));
  print_line(fmt::format("decode  {:>6} tokens  {:>10.1f} tok/s  {:>8.2f} GB/s of weights",
                         number("new_tokens"), number("decode_tok_s"), number("decode_gb_s")));
  print_line(
      fmt::format("memory read                            {:>8.2f} GB/s", number("read_gb_s")));
}

Result<Json> bench_collective(const CollectiveFlags& flags) {
  if (flags.encrypt) {
    return Error{ErrorCode::kUnsupported, "--encrypt is not supported yet: links are plain"};
  }
  CollectiveTimes best;
  for (int run = 0; run < flags.runs; ++run) {
    const CollectiveTimes times = TRY(bench_collective_processes(flags.options));
    if (run == 0 || times.p50_us < best.p50_us) best = times;
  }
  return Json(JsonObject{{"ranks", flags.options.ranks},
                         {"link", flags.options.link},
                         {"bytes", flags.options.bytes},
                         {"rounds", flags.options.rounds},
                         {"runs", flags.runs},
                         {"min_us", best.min_us},
                         {"p50_us", best.p50_us},
                         {"p99_us", best.p99_us},
                         {"max_us", best.max_us}});
}

int finish(Result<Json> result, bool as_json, void (*print)(const Json&)) {
  if (!result.ok()) return fail(result.error());
  as_json ? print_json(result.value()) : print(result.value());
  return 0;
}

void print_collective(const Json& result) {
  const auto number = [&](std::string_view key) { return find(result, key)->to_number<double>(); };
  print_line(
      fmt::format("all-reduce of {} bytes, {} ranks over {}: p50 {:.2f} us, p99 {:.2f} us, "
                  "least {:.2f} us (best of {} runs)",
                  number("bytes"), number("ranks"), find(result, "link")->as_string().c_str(),
                  number("p50_us"), number("p99_us"), number("min_us"), number("runs")));
}

void add_collective(CLI::App& bench, Command& chosen) {
  auto flags = std::make_shared<CollectiveFlags>();
  CLI::App* command = bench.add_subcommand("collective", "the time of one all-reduce");
  command->add_option("--ranks", flags->options.ranks, "worker processes (default 2)")
      ->check(CLI::Range(1, LocalGroup::kRanksMax));
  command->add_option("--link", flags->options.link, "shm or tcp (default shm)")
      ->check(CLI::IsMember({"shm", "tcp"}));
  command->add_option("--bytes", flags->options.bytes, "of one vector (default 16384)")
      ->check(CLI::Range(4, 1 << 30));
  command->add_option("--rounds", flags->options.rounds, "of one run (default 5000)")
      ->check(CLI::PositiveNumber);
  command->add_option("--runs", flags->runs, "of which the best counts (default 5)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--encrypt", flags->encrypt, "with encrypted links");
  command->add_flag("--json", flags->json, "one JSON value");
  command->callback([flags, &chosen] {
    chosen = [flags] { return finish(bench_collective(*flags), flags->json, print_collective); };
  });
}

}  // namespace

void add_bench_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<ModelFlags>();
  CLI::App* command = app.add_subcommand("bench", "measure prompt and generation speed");
  auto* model = command->add_option("MODEL", flags->group.model, "a model folder or .gguf file");
  command->add_option("-p", flags->prompt_tokens, "prompt tokens (default 512)")
      ->check(CLI::PositiveNumber);
  command->add_option("-n", flags->new_tokens, "new tokens (default 128)")
      ->check(CLI::PositiveNumber);
  command->add_option("-r", flags->repetitions, "rounds, of which the median counts (default 3)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--json", flags->json, "one JSON value");
  add_group_flags(*command, flags->group);
  command->callback([flags, model, &chosen] {
    if (chosen) return;  // `bench collective`, whose callback has run before
    if (model->count() == 0) throw CLI::RequiredError("MODEL or collective");
    chosen = [flags] { return finish(bench_model(*flags), flags->json, print_table); };
  });
  add_collective(*command, chosen);
}

}  // namespace lockstep

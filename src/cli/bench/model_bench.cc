#include "cli/bench/model_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>

#include "base/machine/machine.h"
#include "base/machine/power_meter.h"
#include "cli/client/generate.h"
#include "cli/text/output.h"
#include "device/open/read_probe.h"
#include "node/worker/worker_control.h"

namespace lockstep {
namespace {

constexpr int kProbeRounds = 3;
constexpr double kLeastSeconds = 1e-9;  // a clock may stand still

// A prompt of tokens that every vocabulary has; different for each `first`, so that no part of it
// is cached.
std::vector<int32_t> any_prompt(int tokens, int first, int vocab_size) {
  std::vector<int32_t> prompt;
  prompt.reserve(static_cast<size_t>(tokens));
  for (int i = 0; i < tokens; ++i) prompt.push_back((first + i * 7 + 3) % vocab_size);
  return prompt;
}

struct Cost {
  double seconds = 0;
  double joules = 0;
};

// From the first request to the last token of all. Gaps between tokens are not usable here: tokens
// may reach us together.
Result<Cost> cost_of(ModelService& model, int streams, const std::vector<int32_t>& prompt,
                     int new_tokens) {
  std::optional<PowerMeter> meter = PowerMeter::open();
  const GenerateRequest request{.prompt = prompt, .max_tokens = new_tokens};
  const std::vector<Generated> done =
      TRY(generate_together(model, {static_cast<size_t>(streams), request}));
  auto last_token = done.front().last_token;
  for (const Generated& one : done) last_token = std::max(last_token, one.last_token);
  return Cost{seconds_between(done.front().started, last_token),
              meter ? meter->joules().value_or(0) : 0};
}

Result<ModelTimes> measure_round(ModelService& model, const ModelBenchFlags& flags, int round) {
  const int vocab_size = model.status().vocab_size;
  const auto cost = [&](int streams, int prompt_tokens, int new_tokens) {
    return cost_of(model, streams, any_prompt(prompt_tokens, round, vocab_size), new_tokens);
  };
  const Cost prompt = TRY(cost(1, flags.prompt_tokens, 1));
  const Cost one = TRY(cost(flags.streams, 1, 1));
  const Cost many = TRY(cost(flags.streams, 1, flags.new_tokens + 1));
  const double tokens = static_cast<double>(flags.new_tokens) * flags.streams;
  return ModelTimes{.prompt_s = std::max(prompt.seconds, kLeastSeconds),
                    .token_s = std::max((many.seconds - one.seconds) / tokens, kLeastSeconds),
                    .prompt_j = prompt.joules,
                    .token_j = std::max((many.joules - one.joules) / tokens, 0.0)};
}

// They come with heartbeats: those of an answer are complete when they change no more.
DraftCounts settled_counts(const ModelService& model) {
  constexpr auto kInterval = 2 * WorkerControl::kHeartbeatInterval;
  constexpr int kIntervalsMax = 10;
  const auto now = [&] { return model.status().drafts.value_or(DraftCounts{}); };
  DraftCounts counts = now();
  for (int i = 0; i < kIntervalsMax; ++i) {
    std::this_thread::sleep_for(kInterval);
    const DraftCounts before = std::exchange(counts, now());
    if (counts == before) break;
  }
  return counts;
}

bool has_guesses(const GroupSpec& spec) {
  return spec.draft_layer || !spec.draft_model.empty();
}

ModelTimes medians_of(const std::vector<ModelTimes>& times) {
  const auto median_of = [&](double ModelTimes::*field) {
    std::vector<double> values;
    for (const ModelTimes& one : times) values.push_back(one.*field);
    return median(std::move(values));
  };
  return {.prompt_s = median_of(&ModelTimes::prompt_s),
          .token_s = median_of(&ModelTimes::token_s),
          .prompt_j = median_of(&ModelTimes::prompt_j),
          .token_j = median_of(&ModelTimes::token_j)};
}

int threads_of(const GroupSupervisorOptions& options) {
  const GroupSpec& spec = options.spec;
  return spec.threads > 0 ? spec.threads : std::max(1, available_core_count() / spec.size());
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<GroupSupervisorOptions> bench_options(const ModelBenchFlags& flags) {
  GroupSupervisorOptions options = TRY(group_options(flags.group));
  int& together = options.spec.sequences_max;
  together = std::max(together, flags.streams);
  options.queue_max = std::max(options.queue_max, flags.streams);
  return options;
}

void limit_lengths(ModelBenchFlags& flags, int context) {
  const int prompt_asked = flags.prompt_tokens, new_asked = flags.new_tokens;
  flags.prompt_tokens = std::min(flags.prompt_tokens, context);
  flags.new_tokens = std::min(flags.new_tokens, context - 1);
  if (flags.prompt_tokens < prompt_asked || flags.new_tokens < new_asked) {
    fmt::print(stderr, "The context holds {} positions: measuring {} prompt and {} new tokens.\n",
               context, flags.prompt_tokens, flags.new_tokens);
  }
}

Result<std::vector<ModelTimes>> measure_in_turn(const std::vector<ModelService*>& models,
                                                const ModelBenchFlags& flags) {
  for (ModelService* model : models) TRY(measure_round(*model, flags, 0));  // warm-up
  std::vector<std::vector<ModelTimes>> measured(models.size());
  for (int i = 0; i < flags.repetitions; ++i) {
    show_progress(fmt::format("round {} of {}", i + 1, flags.repetitions));
    for (size_t m = 0; m < models.size(); ++m) {
      measured[m].push_back(TRY(measure_round(*models[m], flags, i + 1)));
    }
  }
  clear_progress();
  std::vector<ModelTimes> medians;
  for (const std::vector<ModelTimes>& times : measured) medians.push_back(medians_of(times));
  return medians;
}

Result<std::optional<GuessFigures>> count_guesses(ModelService& model,
                                                  const ModelBenchFlags& flags) {
  if (!has_guesses(flags.group.spec)) return std::optional<GuessFigures>();
  const std::vector<int32_t> prompt =
      any_prompt(1, flags.repetitions + 1, model.status().vocab_size);
  const DraftCounts before = settled_counts(model);
  TRY(cost_of(model, flags.streams, prompt, 1));
  const DraftCounts one = settled_counts(model);
  TRY(cost_of(model, flags.streams, prompt, flags.new_tokens + 1));
  const DraftCounts many = settled_counts(model);
  const auto guesses = static_cast<double>(many.guesses - one.guesses);
  if (guesses == 0) return std::optional<GuessFigures>();
  const auto right = static_cast<double>(many.right - one.right);
  const double tokens = static_cast<double>(flags.new_tokens) * flags.streams;
  const auto exchanges = static_cast<double>(many.exchanges - one.exchanges) -
                         static_cast<double>(one.exchanges - before.exchanges);
  return std::optional(GuessFigures{.right = right / guesses,
                                    .tokens_per_step = tokens / std::max(1.0, tokens - right),
                                    .exchanges_per_token = exchanges / tokens});
}

Result<double> read_speed_gb_s(const GroupSupervisorOptions& options) {
  return probe_read_gb_s(threads_of(options) * options.spec.size(), kProbeRounds);
}

JsonObject bench_json(const ModelBenchFlags& flags, const GroupSupervisorOptions& options,
                      const ModelSpeed& speed) {
  const ModelTimes& times = speed.times;
  JsonObject json{{"model", speed.name},
                  {"ranks", options.spec.size()},
                  {"stages", options.spec.link.stages},
                  {"streams", flags.streams},
                  {"threads", threads_of(options)},
                  {"link", link_kind_name(options.spec.link.kind)},
                  {"prompt_tokens", flags.prompt_tokens},
                  {"new_tokens", flags.new_tokens},
                  {"prefill_tok_s", flags.prompt_tokens / times.prompt_s},
                  {"decode_tok_s", 1 / times.token_s},
                  {"read_gb_s", speed.read_gb_s},
                  {"weight_bytes_per_token", speed.bytes_per_token}};
  // With guesses a token need not read them all.
  if (!has_guesses(options.spec)) {
    json["decode_gb_s"] = static_cast<double>(speed.bytes_per_token) / times.token_s / 1e9;
  }
  if (const auto& guesses = speed.guesses) {
    json["guesses_right"] = guesses->right;
    json["tokens_per_step"] = guesses->tokens_per_step;
    json["exchanges_per_token"] = guesses->exchanges_per_token;
  }
  if (times.prompt_j > 0) json["prefill_j_per_token"] = times.prompt_j / flags.prompt_tokens;
  if (times.token_j > 0) json["decode_j_per_token"] = times.token_j;
  return json;
}

void print_model_bench(const Json& result) {
  const auto number = [&](std::string_view key) { return find(result, key)->to_number<double>(); };
  const auto whole = [&](std::string_view key) { return find(result, key)->to_number<uint64_t>(); };
  const auto text = [&](std::string_view key) {
    return std::string_view(find(result, key)->get_string());
  };
  const auto energy = [&](std::string_view key) {
    return find(result, key) ? fmt::format("  {:>8.3g} J/token", number(key)) : std::string();
  };
  print_line(fmt::format("{}, {} in {} x {}, {}, {}", text("model"),
                         counted(whole("ranks"), "rank"), counted(whole("stages"), "stage"),
                         counted(whole("threads"), "thread"), text("link"),
                         counted(whole("streams"), "stream")));
  if (find(result, "shape")) {
    const Json* extrapolated = find(result, "extrapolated");
    print_line(fmt::format("random weights, {}, {:.2f} bits; {} of {} layers measured{}",
                           text("format"), number("bits_per_weight"), number("layers_measured"),
                           number("layers"),
                           extrapolated->as_bool() ? ", speeds are extrapolated" : ""));
  }
  print_line(fmt::format("prefill {:>6} tokens  {:>10.1f} tok/s{}", number("prompt_tokens"),
                         number("prefill_tok_s"), energy("prefill_j_per_token")));
  const std::string read = find(result, "decode_gb_s")
                               ? fmt::format("  {:>8.2f} GB/s of weights", number("decode_gb_s"))
                               : std::string();
  print_line(fmt::format("decode  {:>6} tokens  {:>10.1f} tok/s{}{}", number("new_tokens"),
                         number("decode_tok_s"), read, energy("decode_j_per_token")));
  if (find(result, "guesses_right")) {
    const double exchanges = number("exchanges_per_token");
    print_line(fmt::format(
        "guesses {:>5.1f} % right {:>13.2f} tokens a step{}", 100 * number("guesses_right"),
        number("tokens_per_step"),
        exchanges == 0 ? std::string() : fmt::format("  {:.1f} exchanges a token", exchanges)));
  }
  print_line(
      fmt::format("memory read                            {:>8.2f} GB/s", number("read_gb_s")));
}

}  // namespace lockstep

#include "cli/bench/parallel_bench.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "cli/text/output.h"
#include "model/load/model_summary.h"
#include "model/load/open_model.h"
#include "model/load/shape_model.h"
#include "model/load/speed_model.h"
#include "node/network/collective_bench.h"

namespace lockstep {
namespace {

constexpr size_t kDelaysMax = 32;
constexpr int kDelayMaxUs = 1'000'000;
// The time of a CPU device operation besides reading its weights.
constexpr double kCpuKernelUs = 0.3;
constexpr int kParallelExchangeRounds = 20'000;

// The ways to run a model to compare, in the order of the table.
struct Way {
  std::string_view name;
  Parallel parallel;
};
using Ways = std::array<Way, 3>;

Ways ways_of(int ranks) {
  return {{{"one", {.ranks = 1, .stages = 1}},
           {"tensor", {.ranks = ranks, .stages = 1}},
           {"pipeline", {.ranks = ranks, .stages = ranks}}}};
}

Result<std::vector<int>> parse_delays(std::string_view text) {
  const Error bad{
      ErrorCode::kInvalidArgument,
      fmt::format("--delays {} is invalid: write microseconds from 0 to {}, such as 0,3,300", text,
                  kDelayMaxUs)};
  std::vector<int> delays;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (delays.size() < kDelaysMax) {
    int delay = 0;
    const auto parsed = std::from_chars(at, end, delay);
    if (parsed.ec != std::errc() || delay < 0 || delay > kDelayMaxUs) return bad;
    delays.push_back(delay);
    at = parsed.ptr;
    if (at == end) return delays;
    if (*at++ != ',') return bad;
  }
  return bad;
}

struct Subject {
  std::string model;
  TokenCosts costs;
};

Result<Subject> subject_of(const ShapeFlags& flags) {
  const auto format = TRY(format_of(flags));
  const ShapeModel model{.shape = flags.shape, .format = format, .layers = flags.layers};
  Subject subject{.model = shape_model_text(model), .costs = {}};
  const OpenedModel opened = TRY(open_model(subject.model));
  const ModelSummary summary = TRY(summarise(opened.config, opened.source.get()));
  subject.costs = token_costs(opened.config, summary);
  return subject;
}

// One all-reduce of a token's hidden state, without delay.
Result<double> exchange_us(const ParallelFlags& flags, const Subject& subject) {
  CollectiveBenchOptions options;
  options.ranks = flags.ranks;
  options.link.kind = TRY(parse_link_kind(flags.link));
  options.bytes = static_cast<size_t>(subject.costs.hidden) * sizeof(float);
  options.rounds = kParallelExchangeRounds;
  return TRY(bench_collective_processes(options)).p50_us;
}

Result<std::unique_ptr<GroupSupervisor>> start_parallel(const ParallelFlags& flags,
                                                        const std::string& model, Parallel parallel,
                                                        int delay_us) {
  GroupSupervisorOptions options;
  GroupSpec& spec = options.spec;
  spec.model = model;
  spec.shares = equal_shares(parallel.ranks);
  spec.threads = flags.threads;
  spec.pin_threads = true;
  spec.link.kind = TRY(parse_link_kind(flags.link));
  spec.link.stages = parallel.stages;
  spec.link.delay_us = delay_us;
  spec.context = flags.prompt_tokens + flags.new_tokens + 1;
  return start_group(options);
}

// All ways in turn, so that drift of the machine favours none.
Result<Json> measure_delay(const ParallelFlags& flags, const Subject& subject, double exchange,
                           int delay_us) {
  const Ways ways = ways_of(flags.ranks);
  std::vector<std::unique_ptr<GroupSupervisor>> groups;
  std::vector<ModelService*> models;
  for (const Way& way : ways) {
    groups.push_back(TRY(start_parallel(flags, subject.model, way.parallel, delay_us)));
    models.push_back(groups.back().get());
  }
  ModelBenchFlags bench;
  bench.prompt_tokens = flags.prompt_tokens;
  bench.new_tokens = flags.new_tokens;
  bench.repetitions = flags.repetitions;
  const std::vector<ModelTimes> times = TRY(measure_in_turn(models, bench));
  const MachineSpeed machine =
      machine_speed(subject.costs, times.front().token_s * 1e6, kCpuKernelUs);
  const LinkSpeed link{.exchange_us = exchange, .delay_us = static_cast<double>(delay_us)};
  JsonObject row{{"delay_us", delay_us}};
  for (size_t i = 0; i < ways.size(); ++i) {
    const double predicted_us = token_us(subject.costs, machine, link, ways[i].parallel);
    row[ways[i].name] = JsonObject{{"decode_tok_s", 1 / times[i].token_s},
                                   {"predicted_tok_s", 1e6 / predicted_us},
                                   {"decode_ratio", times[0].token_s / times[i].token_s},
                                   {"first_token_s", times[i].prompt_s},
                                   {"first_token_ratio", times[0].prompt_s / times[i].prompt_s}};
  }
  return Json(std::move(row));
}

}  // namespace

Result<Json> bench_parallel(const ParallelFlags& flags) {
  const std::vector<int> delays = TRY(parse_delays(flags.delays_us));
  const Subject subject = TRY(subject_of(flags.shape));
  const double exchange = TRY(exchange_us(flags, subject));
  JsonArray rows;
  for (const int delay : delays)
    rows.push_back(TRY(measure_delay(flags, subject, exchange, delay)));
  return Json(JsonObject{{"model", subject.model},
                         {"ranks", flags.ranks},
                         {"threads", flags.threads},
                         {"link", flags.link},
                         {"prompt_tokens", flags.prompt_tokens},
                         {"new_tokens", flags.new_tokens},
                         {"exchange_us", exchange},
                         {"rows", std::move(rows)}});
}

void print_parallel_bench(const Json& result) {
  const auto number = [](const Json& json, std::string_view key) {
    return find(json, key)->to_number<double>();
  };
  print_line(fmt::format("{}, {:.0f} ranks x {:.0f} threads, {}, an exchange takes {:.1f} us",
                         std::string_view(find(result, "model")->get_string()),
                         number(result, "ranks"), number(result, "threads"),
                         std::string_view(find(result, "link")->get_string()),
                         number(result, "exchange_us")));
  print_line(fmt::format("{:>8} | {:>30} | {:>38} | {:>31}", "", "decode, tok/s",
                         "predicted, tok/s", "first token, s"));
  print_line(fmt::format("{:>8} | {:>8} {:>13} {:>13} | {:>18} {:>19} | {:>7} {:>13} {:>13}",
                         "delay", "1 rank", "tensor", "pipeline", "tensor", "pipeline", "1 rank",
                         "tensor", "pipeline"));
  for (const Json& row : find(result, "rows")->get_array()) {
    const Json &one = row.at("one"), &tensor = row.at("tensor"), &pipeline = row.at("pipeline");
    const auto with_ratio = [&](const Json& way, const char* value, const char* ratio) {
      return fmt::format("{:.2f} ({:.2f}x)", number(way, value), number(way, ratio));
    };
    const auto with_error = [&](const Json& way) {
      const double predicted = number(way, "predicted_tok_s");
      return fmt::format("{:.2f} ({:+.0f} %)", predicted,
                         100 * (predicted / number(way, "decode_tok_s") - 1));
    };
    print_line(
        fmt::format("{:>5.0f} us | {:>8.2f} {:>13} {:>13} | {:>18} {:>19} | {:>7.3f} {:>13} {:>13}",
                    number(row, "delay_us"), number(one, "decode_tok_s"),
                    with_ratio(tensor, "decode_tok_s", "decode_ratio"),
                    with_ratio(pipeline, "decode_tok_s", "decode_ratio"), with_error(tensor),
                    with_error(pipeline), number(one, "first_token_s"),
                    with_ratio(tensor, "first_token_s", "first_token_ratio"),
                    with_ratio(pipeline, "first_token_s", "first_token_ratio")));
  }
}

}  // namespace lockstep

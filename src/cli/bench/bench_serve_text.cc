// The output of `lockstep bench serve`: figures as JSON, and JSON as a table.
#include <fmt/core.h>

#include "cli/bench/bench_serve.h"
#include "cli/client/node_client.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

JsonObject times_ms(const TimeDistribution& times) {
  return {{"mean", times.mean() * 1e3},
          {"p50", times.quantile(0.5) * 1e3},
          {"p90", times.quantile(0.9) * 1e3},
          {"p99", times.quantile(0.99) * 1e3},
          {"p999", times.quantile(0.999) * 1e3},
          {"max", times.max() * 1e3},
          {"count", times.count()}};
}

std::string range_text(const LengthRange& range) {
  return range.least == range.most ? fmt::format("{}", range.least)
                                   : fmt::format("{}-{}", range.least, range.most);
}

double per_second(double count, double seconds) {
  return seconds > 0 ? count / seconds : 0;
}

void add_limits(JsonObject& json, const LoadOptions& options, const LoadFigures& figures) {
  const ServiceLimits& limits = options.limits;
  if (!limits.any()) return;
  json["good"] = figures.good;
  json["goodput_s"] = per_second(static_cast<double>(figures.good), figures.elapsed_s);
  json["limits_ms"] = JsonObject{{"first_token", limits.first_token_ms},
                                 {"token", limits.token_ms},
                                 {"whole", limits.whole_ms}};
}

void print_times(const Json& result, std::string_view key, std::string_view name) {
  const Json& times = *find(result, key);
  const auto ms = [&](std::string_view which) { return real_in(times, which); };
  print_line(fmt::format("{:<28}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}", name, ms("mean"),
                         ms("p50"), ms("p90"), ms("p99"), ms("max")));
}

void print_errors(const Json& result) {
  const Json* errors = find(result, "errors");
  if (errors == nullptr || !errors->is_object()) return;
  for (const auto& [kind, error] : errors->get_object()) {
    print_line(fmt::format("{:>8} x {}: {}", number_in(error, "count"), std::string_view(kind),
                           text_in(error, "example")));
  }
}

}  // namespace

JsonObject bench_serve_json(const LoadTarget& target, const LoadOptions& options,
                            const LoadFigures& figures) {
  const double seconds = figures.elapsed_s;
  JsonObject errors;
  for (const auto& [kind, error] : figures.errors) {
    errors[kind] = JsonObject{{"count", error.count}, {"example", error.example}};
  }
  JsonObject json{{"model", target.model},
                  {"api", target.api == LoadApi::kChat ? "chat" : "completions"},
                  {"rate", options.shape.rate},
                  {"concurrency", options.concurrency},
                  {"prompt_tokens", range_text(options.shape.prompt_tokens)},
                  {"new_tokens", range_text(options.shape.new_tokens)},
                  {"shared_prefix", options.shape.shared_prefix},
                  {"seed", options.shape.seed},
                  {"elapsed_s", seconds},
                  {"sent", figures.sent},
                  {"completed", figures.completed},
                  {"running_max", figures.running_max},
                  {"requests_s", per_second(static_cast<double>(figures.completed), seconds)},
                  {"prompt_tok_s", per_second(static_cast<double>(figures.prompt_tokens), seconds)},
                  {"new_tok_s", per_second(static_cast<double>(figures.new_tokens), seconds)},
                  {"prompt_tokens_total", figures.prompt_tokens},
                  {"new_tokens_total", figures.new_tokens},
                  {"tokens_counted_by", figures.are_tokens_counted_here ? "events" : "server"},
                  {"first_token_ms", times_ms(figures.first_token)},
                  {"inter_token_ms", times_ms(figures.inter_token)},
                  {"token_ms", times_ms(figures.token)},
                  {"whole_ms", times_ms(figures.whole)},
                  {"lateness_ms", times_ms(figures.lateness)},
                  {"errors", std::move(errors)}};
  add_limits(json, options, figures);
  return json;
}

void print_bench_serve(const Json& result) {
  const double rate = real_in(result, "rate");
  const int64_t concurrency = number_in(result, "concurrency");
  const std::string load =
      rate > 0 ? fmt::format("{} requests/s at random{}", rate,
                             concurrency > 0 ? fmt::format(", {} at most", concurrency) : "")
               : fmt::format("{} at a time", concurrency);
  print_line(fmt::format("{}, {}: {} prompt and {} new tokens, {}", text_in(result, "model"),
                         text_in(result, "api"), text_in(result, "prompt_tokens"),
                         text_in(result, "new_tokens"), load));
  print_line(fmt::format("{} of {} requests completed in {:.2f} s, {} at once at most",
                         number_in(result, "completed"), number_in(result, "sent"),
                         real_in(result, "elapsed_s"), number_in(result, "running_max")));
  print_errors(result);
  print_line(fmt::format(
      "{:.2f} requests/s, {:.1f} prompt tok/s, {:.1f} new tok/s (counted by {})",
      real_in(result, "requests_s"), real_in(result, "prompt_tok_s"), real_in(result, "new_tok_s"),
      text_in(result, "tokens_counted_by") == "server" ? "the server" : "events"));
  if (find(result, "good") != nullptr) {
    print_line(fmt::format("{} requests kept the limits: {:.2f} requests/s",
                           number_in(result, "good"), real_in(result, "goodput_s")));
  }
  print_line(fmt::format("{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}", "ms", "mean", "p50", "p90", "p99",
                         "most"));
  print_times(result, "first_token_ms", "to the first token");
  print_times(result, "inter_token_ms", "between events with tokens");
  print_times(result, "token_ms", "a token of a request");
  print_times(result, "whole_ms", "whole answer");
  print_times(result, "lateness_ms", "sent later than intended");
}

}  // namespace lockstep

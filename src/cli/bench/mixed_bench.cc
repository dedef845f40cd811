#include "cli/bench/mixed_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/percentile.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// The first steps of streams differ from later ones: their prompts are fed.
constexpr size_t kTokensSkipped = 4;
constexpr std::chrono::minutes kWaitMax{60};  // for slow machines

// One request and the times of its tokens.
class Watched {
 public:
  EventSink events() {
    return [this](RequestEvent event) {
      const std::lock_guard lock(mutex_);
      if (event.as<RequestEvent::Token>()) times_.push_back(Clock::now());
      if (auto* ended = event.as<RequestEvent::Ended>()) outcome_ = std::move(ended->outcome);
      changed_.notify_all();
    };
  }

  // Waits until it has this many tokens or has ended.
  Status wait_for_tokens(size_t count) {
    std::unique_lock lock(mutex_);
    const bool has_come = changed_.wait_for(
        lock, kWaitMax, [&] { return times_.size() >= count || outcome_.has_value(); });
    if (outcome_ && !outcome_->ok()) return outcome_->error();
    if (has_come && times_.size() >= count) return Ok{};
    if (has_come) return Error{ErrorCode::kExhausted, "a stream has filled the context"};
    return Error{ErrorCode::kTimeout, fmt::format("no token within {} minutes", kWaitMax.count())};
  }
  void wait_for_end() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kWaitMax, [&] { return outcome_.has_value(); });
  }
  // The milliseconds between consecutive tokens, the later of which arrived between these times.
  void add_gaps(Clock::time_point from, Clock::time_point to, std::vector<double>& gaps) {
    const std::lock_guard lock(mutex_);
    for (size_t i = kTokensSkipped; i < times_.size(); ++i) {
      if (times_[i] <= from || times_[i] > to) continue;
      gaps.push_back(std::chrono::duration<double, std::milli>(times_[i] - times_[i - 1]).count());
    }
  }
  Clock::time_point first_token() {
    const std::lock_guard lock(mutex_);
    return times_.front();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Clock::time_point> times_;
  std::optional<Result<FinishReason>> outcome_;
};

std::vector<int32_t> mixed_prompt(int tokens, int first, int vocab_size) {
  std::vector<int32_t> prompt;
  for (int i = 0; i < tokens; ++i) prompt.push_back((first + i * 7) % vocab_size);
  return prompt;
}

struct Gaps {
  std::vector<double> alone, beside;  // milliseconds
  std::vector<double> prompt_seconds;
};

// The streams, cancelled by the destructor.
class Streams {
 public:
  explicit Streams(ModelService& model) : model_(model) {}
  ~Streams() {
    for (const uint64_t id : ids_) model_.cancel(id);
    for (const auto& stream : watched_) stream->wait_for_end();
  }
  Status start(GenerateRequest request) {
    auto watched = std::make_unique<Watched>();
    ids_.push_back(TRY(model_.generate(std::move(request), watched->events())));
    watched_.push_back(std::move(watched));
    return Ok{};
  }
  const std::vector<std::unique_ptr<Watched>>& watched() const { return watched_; }

 private:
  ModelService& model_;
  std::vector<uint64_t> ids_;
  std::vector<std::unique_ptr<Watched>> watched_;
};

// A prompt while the streams run; no earlier one shares its beginning.
Status measure_prompt(ModelService& model, const MixedBenchFlags& flags, int number, Gaps& gaps) {
  const ModelStatus status = model.status();
  Streams streams(model);
  for (int i = 0; i < flags.streams; ++i) {
    TRY(streams.start({.prompt = mixed_prompt(2, number * flags.streams + i, status.vocab_size),
                       .max_tokens = status.context}));
  }
  const auto enough = static_cast<size_t>(flags.new_tokens) + kTokensSkipped;
  for (const auto& stream : streams.watched()) TRY(stream->wait_for_tokens(enough));
  const auto begin = Clock::now();
  Streams prompt(model);
  TRY(prompt.start({.prompt = mixed_prompt(flags.prompt_tokens, 1000 + number, status.vocab_size),
                    .max_tokens = 1}));
  Watched& fed = *prompt.watched().front();
  TRY(fed.wait_for_tokens(1));
  const auto end = fed.first_token();
  for (const auto& stream : streams.watched()) {
    stream->add_gaps(Clock::time_point::min(), begin, gaps.alone);
    stream->add_gaps(begin, end, gaps.beside);
  }
  gaps.prompt_seconds.push_back(std::chrono::duration<double>(end - begin).count());
  return Ok{};
}

JsonObject percentiles(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  return {{"count", values.size()},
          {"p50_ms", at_percent(values, 50)},
          {"p99_ms", at_percent(values, 99)},
          {"max_ms", at_percent(values, 100)}};
}

Result<GroupSupervisorOptions> options_of(const MixedBenchFlags& flags) {
  GroupSupervisorOptions options =
      TRY(model_or_shape_options(flags.model, flags.prompt_tokens + flags.new_tokens));
  int& together = options.spec.sequences_max;
  together = std::max(together, flags.streams + 1);
  return options;
}

}  // namespace

Result<Json> bench_mixed(const MixedBenchFlags& flags) {
  const std::unique_ptr<GroupSupervisor> model = TRY(start_group(TRY(options_of(flags))));
  Gaps gaps;
  for (int i = 0; i < flags.repetitions; ++i) {
    show_progress(fmt::format("prompt {} of {}", i + 1, flags.repetitions));
    TRY(measure_prompt(*model, flags, i, gaps));
  }
  clear_progress();
  JsonObject alone = percentiles(gaps.alone), beside = percentiles(gaps.beside);
  const double ratio = beside["p99_ms"].to_number<double>() / alone["p99_ms"].to_number<double>();
  std::sort(gaps.prompt_seconds.begin(), gaps.prompt_seconds.end());
  const double prompt_s = at_percent(gaps.prompt_seconds, 50);
  return Json(JsonObject{{"model", model->status().name},
                         {"streams", flags.streams},
                         {"prompt_tokens", flags.prompt_tokens},
                         {"alone", std::move(alone)},
                         {"beside", std::move(beside)},
                         {"p99_ratio", ratio},
                         {"first_token_s", prompt_s},
                         {"prefill_tok_s", flags.prompt_tokens / prompt_s}});
}

void print_mixed_bench(const Json& result) {
  const auto number = [](const Json& json, std::string_view key) {
    return find(json, key)->to_number<double>();
  };
  print_line(fmt::format("{}, {:.0f} streams and a prompt of {:.0f} tokens",
                         std::string_view(find(result, "model")->get_string()),
                         number(result, "streams"), number(result, "prompt_tokens")));
  print_line(fmt::format("{:<16} {:>8} {:>10} {:>10} {:>10}", "between tokens", "seen", "p50 ms",
                         "p99 ms", "longest"));
  for (const auto& [key, name] :
       {std::pair("alone", "streams alone"), std::pair("beside", "with the prompt")}) {
    const Json& gaps = *find(result, key);
    print_line(fmt::format("{:<16} {:>8.0f} {:>10.2f} {:>10.2f} {:>10.2f}", name,
                           number(gaps, "count"), number(gaps, "p50_ms"), number(gaps, "p99_ms"),
                           number(gaps, "max_ms")));
  }
  print_line(
      fmt::format("the 99th percentile is {:.2f} times as long; the prompt's first token "
                  "came after {:.1f} s ({:.1f} tok/s)",
                  number(result, "p99_ratio"), number(result, "first_token_s"),
                  number(result, "prefill_tok_s")));
}

}  // namespace lockstep

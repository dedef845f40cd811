#include "cli/constraint_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/generate.h"
#include "cli/output.h"
#include "model/shape_model.h"

namespace lockstep {
namespace {

struct Kind {
  std::string_view name;
  std::string_view constraint;
};

// Weights that are random want what no schema allows, so that nearly every token of the last kind
// needs a mask; it never ends before its tokens have come.
constexpr std::array<Kind, 3> kKinds{{
    {"none", ""},
    {"text", R"({"sequence":[{"free":{"without":["<tool_call>"]}},{"text":"<tool_call>"}]})"},
    {"schema", R"({"json_schema":{"type":"array","minItems":10000,"items":{"type":"object",
        "properties":{"name":{"type":"string","maxLength":24},
        "count":{"type":"integer","maximum":99999},
        "is_done":{"type":"boolean"}},"required":["name","count","is_done"]}}})"},
}};

Result<double> token_ms(ModelService& model, const ConstraintBenchFlags& flags, const Kind& kind) {
  const Generated done = TRY(generate_and_wait(
      model,
      {.prompt = {1}, .max_tokens = flags.new_tokens, .constraint = std::string(kind.constraint)}));
  if (static_cast<int>(done.tokens.size()) < flags.new_tokens) {
    return Error{ErrorCode::kExhausted, fmt::format("an answer ended after {} of {} tokens",
                                                    done.tokens.size(), flags.new_tokens)};
  }
  return seconds_between(done.first_token, done.last_token) * 1000 / (flags.new_tokens - 1);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<LocalGroupOptions> options_of(ConstraintBenchFlags flags) {
  if (!flags.shape.shape.empty()) {
    flags.group.model = shape_model_text({.shape = flags.shape.shape,
                                          .format = TRY(format_of(flags.shape)),
                                          .layers = flags.shape.layers});
  }
  if (flags.group.context == 0) flags.group.context = flags.new_tokens + 64;
  return group_options(flags.group);
}

}  // namespace

Result<Json> bench_constraint(const ConstraintBenchFlags& flags) {
  const std::unique_ptr<LocalGroup> model = TRY(start_group(TRY(options_of(flags))));
  for (const Kind& kind : kKinds) TRY(token_ms(*model, flags, kind));  // warm-up
  std::array<std::vector<double>, kKinds.size()> times;
  std::array<std::vector<double>, kKinds.size()> ratios;  // to the unconstrained one of the round
  for (int round = 0; round < flags.repetitions; ++round) {
    show_progress(fmt::format("round {} of {}", round + 1, flags.repetitions));
    for (size_t i = 0; i < kKinds.size(); ++i) {
      times[i].push_back(TRY(token_ms(*model, flags, kKinds[i])));
      ratios[i].push_back(times[i].back() / times[0].back());
    }
  }
  clear_progress();
  JsonObject json{{"model", model->status().name},
                  {"new_tokens", flags.new_tokens},
                  {"repetitions", flags.repetitions},
                  {"vocab_size", model->status().vocab_size}};
  for (size_t i = 0; i < kKinds.size(); ++i) {
    json[kKinds[i].name] = JsonObject{{"token_ms", median(times[i])}, {"ratio", median(ratios[i])}};
  }
  return Json(std::move(json));
}

void print_constraint_bench(const Json& result) {
  print_line(fmt::format("{}, {} tokens of vocabulary",
                         std::string_view(find(result, "model")->get_string()),
                         find(result, "vocab_size")->to_number<int>()));
  print_line(fmt::format("{:<12} {:>10} {:>10}", "constraint", "token ms", "more"));
  for (const Kind& kind : kKinds) {
    const Json& one = *find(result, kind.name);
    print_line(fmt::format("{:<12} {:>10.2f} {:>9.2f}%", kind.name,
                           find(one, "token_ms")->to_number<double>(),
                           (find(one, "ratio")->to_number<double>() - 1) * 100));
  }
}

}  // namespace lockstep

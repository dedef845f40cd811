#include "cli/bench/constraint_bench.h"

#include <fmt/core.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/client/generate.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

struct Kind {
  std::string_view name;
  std::string_view constraint;
  int draft_tokens = 0;
};

// Random weights choose tokens that no schema allows, so nearly every token of the last kind needs
// a mask; its answer never ends before its tokens are generated.
constexpr std::string_view kSchema =
    R"({"json_schema":{"type":"array","minItems":10000,"items":{"type":"object",
        "properties":{"name":{"type":"string","maxLength":24},
        "count":{"type":"integer","maximum":99999},
        "is_done":{"type":"boolean"}},"required":["name","count","is_done"]}}})";
constexpr std::array<Kind, 4> kKinds{{
    {"none", ""},
    {"text", R"({"sequence":[{"free":{"without":["<tool_call>"]}},{"text":"<tool_call>"}]})"},
    {"schema", kSchema},
    {"guesses", kSchema, 8},
}};

Result<double> token_ms(ModelService& model, const ConstraintBenchFlags& flags, const Kind& kind) {
  const Generated done =
      TRY(generate_and_wait(model, {.prompt = {1},
                                    .max_tokens = flags.new_tokens,
                                    .draft_tokens = kind.draft_tokens,
                                    .constraint = std::string(kind.constraint)}));
  if (static_cast<int>(done.tokens.size()) < flags.new_tokens) {
    return Error{ErrorCode::kExhausted, fmt::format("an answer ended after {} of {} tokens",
                                                    done.tokens.size(), flags.new_tokens)};
  }
  return seconds_between(done.first_token, done.last_token) * 1000 / (flags.new_tokens - 1);
}

}  // namespace

Result<Json> bench_constraint(const ConstraintBenchFlags& flags) {
  const GroupSupervisorOptions options = TRY(model_or_shape_options(flags.model, flags.new_tokens));
  const std::unique_ptr<GroupSupervisor> model = TRY(start_group(options));
  for (const Kind& kind : kKinds) (void)TRY(token_ms(*model, flags, kind));  // warm-up
  std::array<std::vector<double>, kKinds.size()> times;
  std::array<std::vector<double>, kKinds.size()> ratios;  // to the round's unconstrained one
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

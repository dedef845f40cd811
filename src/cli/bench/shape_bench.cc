#include "cli/bench/shape_bench.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/machine/available_memory.h"
#include "model/load/model_summary.h"
#include "model/load/open_model.h"
#include "model/load/sequence_state.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

// Activations, programs and tables of a rank, and the probe's buffer.
constexpr uint64_t kOtherBytes = uint64_t{512} << 20;
constexpr uint64_t kProbeBytes = uint64_t{1} << 30;
// Positions beyond a benchmark's request.
constexpr int kPositionsToSpare = 64;

// The whole model, not loaded, and the part of it that is measured.
struct Plan {
  ModelConfig config;
  ModelSummary summary;
  std::string format;
  int layers_measured = 0;
  WholeModel whole;
  std::vector<std::string> models;  // measured in turn: the requested layers, then a single one
};

WholeModel whole_of(const ModelConfig& config, const ModelSummary& summary) {
  const bool is_sparse = common_layers_have_experts(config);
  const auto common = std::find_if(
      config.traits.begin(), config.traits.end(),
      [is_sparse](const LayerTraits& layer) { return layer.has_experts == is_sparse; });
  const auto index = static_cast<size_t>(common - config.traits.begin());
  uint64_t all_bytes = 0;
  for (const WeightCount& layer : summary.layers) all_bytes += layer.token_bytes;
  WholeModel whole;
  whole.layer_bytes = static_cast<double>(summary.layers[index].token_bytes);
  whole.layers = static_cast<double>(all_bytes) / whole.layer_bytes;
  whole.shared_bytes = static_cast<double>(summary.total.token_bytes - all_bytes);
  return whole;
}

Result<Plan> plan_of(const ShapeFlags& flags) {
  Plan plan;
  plan.format = TRY(format_of(flags));
  ShapeModel model{.shape = flags.shape, .format = plan.format};
  {
    const OpenedModel opened = TRY(open_model(shape_model_text(model)));
    plan.summary = TRY(summarise(opened.config, opened.source.get()));
    plan.config = opened.config;
  }
  plan.whole = whole_of(plan.config, plan.summary);
  plan.layers_measured = plan.config.layers;
  if (flags.layers > 0 && flags.layers != plan.config.layers) {
    TRY(with_layers(plan.config, flags.layers));
    plan.layers_measured = model.layers = flags.layers;
  }
  plan.models.push_back(shape_model_text(model));
  if (model.layers > 1) {
    model.layers = 1;
    plan.models.push_back(shape_model_text(model));
  }
  return plan;
}

// The state of one sequence, which uses all window pages in turn.
uint64_t touched_state_bytes(const ModelConfig& config, const ModelBenchFlags& flags) {
  const GroupSpec& spec = flags.group.spec;
  const int pages = pages_for(flags.prompt_tokens + flags.new_tokens);
  const int windows = window_pages_needed({.reach = config.reach(),
                                           .sequences = spec.sequences_max,
                                           .tokens_max = spec.batch_tokens_max,
                                           .pages = pages});
  return state_bytes_of_pages(config, kv_of(spec.exact, spec.kv), pages, windows);
}

Status check_memory(const Plan& plan, const ModelBenchFlags& flags, int ranks) {
  uint64_t needed = kProbeBytes;
  for (const std::string& text : plan.models) {
    const bool drafts = flags.group.spec.draft_layer;
    const OpenedModel model = TRY(drafts ? open_with_draft_layer(text) : open_model(text));
    needed += model.source->file_bytes() + static_cast<uint64_t>(ranks) * kOtherBytes +
              touched_state_bytes(model.config, flags) +
              static_cast<uint64_t>(states_needed(flags.group.spec.sequences_max)) *
                  recurrent_bytes(model.config);
  }
  const std::optional<uint64_t> available = available_memory_bytes();
  if (!available || needed <= *available) return Ok{};
  constexpr double kGib = uint64_t{1} << 30;
  return Error{ErrorCode::kExhausted,
               fmt::format("measuring {} layers needs {:.1f} GiB of memory but {:.1f} GiB are "
                           "free; --layers K measures K of them",
                           plan.layers_measured, static_cast<double>(needed) / kGib,
                           static_cast<double>(*available) / kGib)};
}

// The time of the whole model from those of plan.models.
ModelTimes times_of_whole(const Plan& plan, const std::vector<ModelTimes>& measured) {
  if (plan.layers_measured == plan.config.layers) return measured.front();
  // Energy grows with the layers, like time.
  const auto extrapolate = [&](double ModelTimes::*field) {
    LayerTimes times{.layers = plan.layers_measured, .seconds = measured.front().*field};
    if (measured.size() > 1) {
      times.fewer_layers = 1;
      times.fewer_seconds = measured.back().*field;
    }
    return extrapolated_seconds(times, plan.whole);
  };
  return {.prompt_s = extrapolate(&ModelTimes::prompt_s),
          .token_s = extrapolate(&ModelTimes::token_s),
          .prompt_j = extrapolate(&ModelTimes::prompt_j),
          .token_j = extrapolate(&ModelTimes::token_j)};
}

}  // namespace

Result<std::string> format_of(const ShapeFlags& flags) {
  if (!flags.format.empty()) {
    if (flags.bits == 0) return flags.format;
    return Error{ErrorCode::kInvalidArgument, "give --bits or --format, not both"};
  }
  switch (flags.bits) {
    case 0:
    case 16:
      return std::string("bf16");
    case 32:
      return std::string("f32");
    case 2:
    case 3:
    case 4:
    case 5:
    case 6:
    case 8:
      return fmt::format("mlx{}", flags.bits);
    default:
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("--bits {} is not possible, 2, 3, 4, 5, 6, 8, 16 and 32 are", flags.bits)};
  }
}

Result<std::string> shape_text(const ShapeFlags& flags) {
  const std::string format = TRY(format_of(flags));
  return shape_model_text({.shape = flags.shape, .format = format, .layers = flags.layers});
}

Result<GroupSupervisorOptions> model_or_shape_options(ModelOrShapeFlags flags, int positions) {
  if (!flags.shape.shape.empty()) {
    flags.group.model = TRY(shape_text(flags.shape));
  }
  int& context = flags.group.spec.context;
  if (context == 0) context = positions + kPositionsToSpare;
  return group_options(flags.group);
}

double extrapolated_seconds(const LayerTimes& times, const WholeModel& whole) {
  const double layers = times.layers;
  const double share = whole.layer_bytes / (layers * whole.layer_bytes + whole.shared_bytes);
  double layer_seconds = times.seconds * share;
  if (times.fewer_layers > 0) {
    const double measured =
        (times.seconds - times.fewer_seconds) / (times.layers - times.fewer_layers);
    if (measured > 0 && measured * layers <= times.seconds) layer_seconds = measured;
  }
  return times.seconds + layer_seconds * (whole.layers - layers);
}

Result<Json> bench_shape(const ShapeFlags& shape, ModelBenchFlags flags) {
  const Plan plan = TRY(plan_of(shape));
  flags.group.model = plan.models.front();
  GroupSupervisorOptions options = TRY(bench_options(flags));
  TRY(check_memory(plan, flags, options.spec.size()));
  double read_gb_s = TRY(read_speed_gb_s(options));
  std::vector<std::unique_ptr<GroupSupervisor>> groups;
  std::vector<ModelService*> models;
  for (const std::string& model : plan.models) {
    options.spec.model = model;
    groups.push_back(TRY(start_group(options)));
    models.push_back(groups.back().get());
  }
  limit_lengths(flags, models.front()->status().context);
  const std::vector<ModelTimes> measured = TRY(measure_in_turn(models, flags));
  const std::optional<GuessFigures> guesses = TRY(count_guesses(*models.front(), flags));
  read_gb_s = std::max(read_gb_s, TRY(read_speed_gb_s(options)));
  const WeightCount& total = plan.summary.total;
  JsonObject json = bench_json(flags, options,
                               {.name = models.front()->status().name,
                                .times = times_of_whole(plan, measured),
                                .read_gb_s = read_gb_s,
                                .bytes_per_token = total.token_bytes,
                                .guesses = guesses});
  json["shape"] = shape.shape;
  json["format"] = plan.format;
  json["bits_per_weight"] = total.bits();
  json["weight_bytes"] = total.bytes;
  json["layers"] = plan.config.layers;
  json["layers_measured"] = plan.layers_measured;
  json["extrapolated"] = plan.layers_measured != plan.config.layers;
  return Json(std::move(json));
}

}  // namespace lockstep

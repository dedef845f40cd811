#include "model/quantise/quantising.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "model/load/weight_table.h"
#include "weights/safetensors/tensor_names.h"

namespace lockstep {
namespace {

constexpr int kRouterBits = 8;
constexpr std::string_view kWeightEnding = ".weight";

// The stack of a layer's experts, in the names of mlx_lm.
std::string_view stack_of(const ModelConfig& config) {
  const std::string_view name = config.architecture->name;
  if (name == "GptOssForCausalLM") return ".experts.";
  return name == "Gemma4ForCausalLM" ? ".experts.switch_glu." : ".switch_mlp.";
}

// Small matrices from which much depends.
bool stays_whole(Role role) {
  switch (role) {
    case Role::kIndexWeights:
    case Role::kIndexPoolGate:
    case Role::kAttentionStreams:
    case Role::kFeedForwardStreams:
    case Role::kLastStreams:
      return true;
    default:
      return is_of_mixed_streams(role);
  }
}

}  // namespace

std::shared_ptr<const QuantisingSource> quantising_source(
    std::shared_ptr<const WeightSource> source, const ModelConfig& config,
    const QuantisingChoice& choice) {
  QuantisingOptions options{.bits = choice.bits,
                            .requantises = choice.requantises,
                            .threads = choice.threads,
                            .first_core = choice.first_core};
  for (const Weight& weight : weight_table(config)) {
    if (weight.role == Role::kKvUp) {
      options.latent = {.count = config.heads,
                        .nope = config.latent.nope,
                        .value = config.latent.value,
                        .kv_rank = config.latent.kv_rank};
    }
    if (stays_whole(weight.role)) options.bits_of.emplace(weight.name, 0);
    if (weight.role != Role::kRouter && weight.role != Role::kSharedScore) continue;
    const bool is_softmax = config.layer(weight.layer).scores == RouterForm::kSoftmax;
    options.bits_of.emplace(weight.name, is_softmax ? kRouterBits : 0);
  }
  return std::make_shared<const QuantisingSource>(std::move(source), std::move(options));
}

std::string module_name(const ModelConfig& config, std::string name, int stack_index) {
  if (name.ends_with(kWeightEnding)) name.resize(name.size() - kWeightEnding.size());
  if (stack_index < 0) return name;
  const std::string expert = ".experts." + std::to_string(stack_index) + ".";
  const size_t at = name.rfind(expert);
  if (at == std::string::npos) return name;  // a head's
  const std::string_view projection = std::string_view(name).substr(at + expert.size());
  return fmt::format("{}{}{}", std::string_view(name).substr(0, at), stack_of(config),
                     stacked_projection(projection));
}

QuantisationReport quantisation_report(const QuantisingSource& source, const ModelConfig& config) {
  QuantisationReport report;
  for (QuantisingSource::Converted& each : source.converted()) {
    each.part.name = module_name(config, std::move(each.name), each.stack_index);
    report.add(each.part);
  }
  return report;
}

}  // namespace lockstep

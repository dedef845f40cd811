#include "model/load/speed_model.h"

#include <algorithm>

namespace lockstep {
namespace {

// Operations of one layer on the device.
constexpr double kDenseKernels = 17;
constexpr double kExpertKernels = 27;
constexpr double kLatentKernels = 48;
constexpr double kRecurrentKernels = 24;  // more than with attention
constexpr double kDensePartKernels = 8;   // of a dense part in addition to experts
constexpr double kLayerInputKernels = 5;
constexpr double kIndexKernels = 8;  // in addition, of a layer that has an index
constexpr double kPoolKernels = 4;   // and of one whose positions share keys
constexpr double kCompressedKernels = 36;
constexpr double kEntryKernels = 9;        // in addition, of entries
constexpr double kEntryIndexKernels = 12;  // and of their index
constexpr double kStreamKernels = 10;      // of several residual streams, in addition
constexpr double kMixKernels = 14;         // of those that are mixed element by element
constexpr double kBlockIndexKernels = 10;  // of an index of blocks, in addition
constexpr double kNgramKernels = 11;

// In a stage of several ranks: two sums per layer; and per token the step's broadcast, the
// embeddings and the choice.
constexpr double kLayerExchanges = 2;
constexpr double kStepExchanges = 3;

double kernels_of(const LayerTraits& layer) {
  const double of_streams = layer.has(Role::kAttentionStreamsDown) ? kMixKernels : kStreamKernels;
  const double streams = layer.streams > 1 ? of_streams : 0;
  if (layer.is_latent()) {
    const double pools = layer.state.index.has_pools() ? kPoolKernels : 0;
    return kLatentKernels + (layer.has_index() ? kIndexKernels : 0) + pools + streams;
  }
  if (layer.is_compressed()) {
    const double entries = layer.pool > 0 ? kEntryKernels : 0;
    return kCompressedKernels + entries + (layer.has_index() ? kEntryIndexKernels : 0) + streams;
  }
  double kernels = (layer.has_experts ? kExpertKernels : kDenseKernels) + streams;
  if (layer.has_experts && layer.has(Role::kDown)) kernels += kDensePartKernels;
  if (layer.has(Role::kLayerInputGate)) kernels += kLayerInputKernels;
  if (layer.has(Role::kIndexQueryKey)) kernels += kBlockIndexKernels;
  if (layer.adds_ngrams) kernels += kNgramKernels;
  return kernels + (layer.is_recurrent() ? kRecurrentKernels : 0);
}

}  // namespace

TokenCosts token_costs(const ModelConfig& config, const ModelSummary& summary) {
  TokenCosts costs;
  for (const ClassSummary& part : summary.classes) {
    const auto bytes = static_cast<double>(part.count.token_bytes);
    (is_whole(part.weight_class) ? costs.whole_bytes : costs.cut_bytes) += bytes;
  }
  double vectors = 0;
  for (int index = 0; index < config.layers; ++index) {
    const LayerTraits& layer = config.layer(index);
    costs.kernels += kernels_of(layer);
    vectors += 1 + layer.feed_forward_sums();
  }
  costs.layers = config.layers;
  costs.vectors = vectors / (kLayerExchanges * costs.layers);
  costs.hidden = config.hidden;
  return costs;
}

double message_count(const TokenCosts& costs, Parallel parallel) {
  const bool has_exchanges = parallel.ranks > parallel.stages;
  const double exchanges = has_exchanges ? kLayerExchanges * costs.layers + kStepExchanges : 0;
  const double hops = parallel.stages > 1 ? parallel.stages : 0;  // the last one returns the choice
  return exchanges + hops;
}

double token_us(const TokenCosts& costs, const MachineSpeed& machine, const LinkSpeed& link,
                Parallel parallel) {
  const double ranks_per_stage = static_cast<double>(parallel.ranks) / parallel.stages;
  const double bytes = costs.cut_bytes / ranks_per_stage + costs.whole_bytes;
  const double compute_us = bytes / machine.read_bytes_per_us + costs.kernels * machine.kernel_us;
  const double message_bytes =
      costs.vectors * costs.hidden * sizeof(float) * std::max(1.0, ranks_per_stage - 1);
  const double carry_us = link.bytes_per_us > 0 ? message_bytes / link.bytes_per_us : 0;
  const double message_us = link.exchange_us + link.delay_us + carry_us;
  return compute_us + message_count(costs, parallel) * message_us;
}

MachineSpeed machine_speed(const TokenCosts& costs, double measured_us, double kernel_us) {
  const double reading_us = std::max(measured_us - costs.kernels * kernel_us, measured_us / 2);
  return {(costs.cut_bytes + costs.whole_bytes) / reading_us, kernel_us};
}

}  // namespace lockstep

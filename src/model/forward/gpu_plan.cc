#include "model/forward/gpu_plan.h"

#include <algorithm>
#include <numeric>

#include "kernels/isa.h"
#include "model/forward/model.h"
#include "model/load/model_summary.h"

namespace lockstep {
namespace {

// Keys and values of all layers up to a position.
uint64_t state_bytes_read(const ModelConfig& config, const Cut& cut, int position) {
  uint64_t bytes = 0;
  for (int layer = 0; layer < config.layers; ++layer) {
    const LayerTraits& traits = config.layer(layer);
    if (traits.is_compressed()) {
      const CompressedReads<int64_t> reads(config, traits, position + 1);
      bytes += static_cast<uint64_t>(reads.bytes(kKvDefault, traits.state));
      continue;
    }
    int positions = position + 1;
    if (traits.window > 0) positions = std::min(positions, traits.window);
    const StateShape state = state_shape(traits.state, cut, 0);
    size_t of_page = 2 * state.bytes(kKvDefault);
    if (config.indexer.chosen > 0 && position >= config.indexer.first_choosing()) {
      bytes +=
          traits.state.index.keys(kKvDefault) * static_cast<size_t>(positions) / kPagePositions;
      positions = config.indexer.chosen;
      if (!traits.state.has_key_rows) of_page /= 2;  // rows hold keys and values
    }
    bytes += of_page * static_cast<size_t>(positions) / kPagePositions;
  }
  if (config.delta) bytes += 2 * recurrent_bytes(config);  // read and written
  return bytes;
}

Batch token_at(int position, bool has_states) {
  Batch batch;
  batch.tokens = {1};
  batch.positions = {position};
  batch.list_offsets = {0};
  if (has_states) {
    batch.states_from = {position == 0 ? -1 : 0};
    batch.states_to = {0};
  }
  batch.page_lists.resize(static_cast<size_t>(position / kPagePositions) + 1);
  std::iota(batch.page_lists.begin(), batch.page_lists.end(), 0);
  batch.outputs = {0};
  return batch;
}

void add(const gpu::DispatchCounts& counts, gpu::DispatchCounts& sum) {
  sum.dispatches += counts.dispatches;
  sum.barriers += counts.barriers;
  sum.bytes += counts.bytes;
}

}  // namespace

gpu::DispatchCounts GpuTokenPlan::sum() const {
  gpu::DispatchCounts all;
  for (const gpu::DispatchCounts& layer : layers) add(layer, all);
  add(others, all);
  return all;
}

Result<GpuTokenPlan> plan_token_on_gpu(const ModelConfig& config,
                                       std::shared_ptr<const WeightSource> source, int position) {
  GpuTokenPlan plan;
  plan.needed_bytes = TRY(summarise(config, source.get())).total.token_bytes;
  gpu::PlanDevice device(position);
  std::vector<std::unique_ptr<Link>> links(1);  // none to itself
  Group group({.rank = 0, .links = std::move(links), .kernels = available_kernels().back()});
  const Batch batch = token_at(position, config.delta.has_value());
  const auto pages = static_cast<int>(batch.page_lists.size());
  const auto after_layer = [&]() -> Status {
    plan.layers.push_back(device.take_counts());
    return Ok{};
  };
  const std::unique_ptr<Model> model = TRY(Model::load({.config = config,
                                                        .source = std::move(source),
                                                        .shares = {1},
                                                        .tokens_max = 1,
                                                        .pages = pages,
                                                        .states = 1,
                                                        .page_list_entries_max = pages,
                                                        .between_layers = after_layer},
                                                       group, device));
  plan.needed_bytes += state_bytes_read(config, model->cut(), position);
  device.take_counts();
  TRY(model->forward(batch));
  plan.others = device.take_counts();
  return plan;
}

}  // namespace lockstep

#include "planner/predict.h"

#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace lockstep {
namespace {

// In addition to two sums per layer: the embeddings, the choice and the step's broadcast.
constexpr double kStepExchanges = 3;
// Prompt chunks in a pipeline are at least this long (engine/schedule/scheduler.h).
constexpr int kChunkMin = kPagePositions;

// The tokens that a step processes.
struct Fed {
  int tokens = 1;
  int outputs = 1;  // whose logits are wanted
  // Keys and values are read once per sequence: how often, and up to which position.
  double state_reads = 1;
  double positions = 0;
};

// The expected number of distinct experts that `tokens` tokens use, each choosing independently.
double experts_met(const ExpertsConfig& experts, int tokens) {
  if (experts.count == 0) return 0;
  const double missed = 1 - static_cast<double>(experts.chosen) / experts.count;
  return experts.count * (1 - std::pow(missed, tokens));
}

struct PartLoad {
  double weight_bytes = 0;
  double operations = 0;
};

PartLoad part_load(const GroupView& group, const StageView& stage, const RankLoad& load,
                   LayerPart part, const Fed& fed) {
  const ExpertsConfig& experts = group.facts.config.experts;
  const double met = experts_met(experts, fed.tokens);
  PartLoad sum;
  const auto add = [&](const LayerLoad& layer, int times, int tokens) {
    const TouchedWeights& touched = layer.parts[static_cast<size_t>(part)];
    sum.weight_bytes += times * (touched.bytes + met * touched.expert_bytes);
    sum.operations +=
        2.0 * times * tokens * (touched.elements + experts.chosen * touched.expert_elements);
  };
  for (size_t i = 0; i < load.classes.size(); ++i) {
    add(load.classes[i], stage.class_layers[i], fed.tokens);
  }
  if (stage.layers.begin == 0) add(load.entry, 1, fed.tokens);
  if (stage.layers.end >= group.facts.config.layers) add(load.head, 1, fed.outputs);
  return sum;
}

// Positions that attention covers, summed over the stage's layers; those of a layer that differs
// from the first one count by how much it stores of each, and by how long its heads are.
struct Reached {
  double stored = 0;
  double computed = 0;
  double indexed = 0;  // of layers that choose among them
};

// Attention covers no more of them than a layer's window or the model's index allows.
double covered_of(const ModelConfig& config, const LayerTraits& layer, double positions) {
  if (layer.window > 0) return std::min<double>(layer.window, positions);
  const IndexerConfig& indexer = config.indexer;
  return indexer.chosen > 0 ? std::min<double>(indexer.first_choosing(), positions) : positions;
}

Reached reached(const GroupView& group, const StageView& stage, double positions) {
  const StateTraits& first = group.facts.config.attention_layer().state;
  Reached sum;
  for (int layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    const LayerTraits& traits = group.facts.config.layer(layer);
    if (traits.is_recurrent()) continue;
    if (traits.is_compressed()) {
      const CompressedReads<double> reads(group.facts.config, traits, positions);
      const double key_and_value =  // bytes
          2.0 * static_cast<double>(page_head_stride(group.kv, first.key_dim)) / kPagePositions;
      sum.stored += reads.bytes(group.kv, traits.state) / key_and_value;
      sum.computed += reads.rows + reads.entries;
      sum.indexed += reads.keys;
      continue;
    }
    const double covered = covered_of(group.facts.config, traits, positions);
    const double length = static_cast<double>(traits.state.key_dim) / first.key_dim;
    const bool is_chosen = group.facts.config.indexer.chosen > 0 && covered < positions;
    // The rows of chosen positions of latent attention hold keys and values.
    const double parts = is_chosen && !traits.state.has_key_rows ? 0.5 : 1;
    sum.stored += parts * covered * length * traits.state.heads / first.heads;
    sum.computed += covered * length;
    if (!is_chosen || !traits.has_index()) continue;
    // Keys alone, of one head.
    const IndexShape& index = traits.state.index;
    const double keys =
        static_cast<double>(index.keys(group.kv)) / page_head_stride(group.kv, index.dim);
    sum.stored += positions * keys * index.dim / (2.0 * first.key_dim * first.heads);
    sum.indexed += positions / index.pool;
  }
  return sum;
}

// For one rank and one part of all layers of the stage.
StepTime part_time(const GroupView& group, const StageView& stage, size_t rank, LayerPart part,
                   const Fed& fed, const Reached& positions) {
  const RankLoad& load = *stage.loads[rank];
  const Machine& machine = *stage.machines[rank];
  PartLoad own = part_load(group, stage, load, part, fed);
  StepTime time;
  time.weights = own.weight_bytes / machine.read_bytes_per_us;
  if (part == LayerPart::kMixer) {
    const auto head_bytes = static_cast<double>(page_head_stride(group.kv, load.state_dim));
    const double state = 2 * head_bytes / kPagePositions * load.state_heads;
    // A recurrent state is read and written, whatever the position.
    const int layers = group.facts.config.recurrent_layers(stage.layers.begin, stage.layers.end);
    const double recurrent = 2 * load.recurrent_bytes * layers;
    time.state =
        fed.state_reads * (positions.stored * state + recurrent) / machine.read_bytes_per_us;
    own.operations += 4.0 * fed.tokens * positions.computed * load.heads * load.state_dim;
    const IndexerConfig& indexer = group.facts.config.indexer;  // whole on every rank
    own.operations += 2.0 * fed.tokens * positions.indexed * indexer.heads * indexer.head_dim;
  }
  const double share = static_cast<double>(stage.layers.size()) / group.facts.config.layers;
  time.kernels = group.facts.layer_kernels * share * machine.kernel_us / kLayerParts;
  if (machine.operations_per_us > 0) {
    time.compute =
        std::max(0.0, own.operations / machine.operations_per_us - time.weights - time.state);
  }
  return time;
}

double slowest_exchange_us(const StageView& stage) {
  double slowest = 0;
  for (const Machine* machine : stage.machines) slowest = std::max(slowest, machine->exchange_us);
  return slowest;
}

// The squares of a token's heads, where ranks norm them together.
double squares_bytes(const ModelConfig& config) {
  return static_cast<double>(config.heads + config.kv_heads) * sizeof(float);
}

StepTime exchange_time(const GroupView& group, const StageView& stage, int tokens) {
  const auto ranks = static_cast<double>(stage.loads.size());
  if (ranks < 2) return {};
  const ModelConfig& config = group.facts.config;
  int mixer = 1, feed_forward = 1;
  for (const RankLoad* load : stage.loads) {
    mixer = std::max(mixer, load->mixer_subtrees);
    feed_forward = std::max(feed_forward, load->feed_forward_subtrees);
  }
  const double vector = static_cast<double>(config.hidden) * sizeof(float) * tokens;
  const double at_once = (ranks - 1) * vector;
  // Long vectors are reduced in parts and gathered, for any number of ranks.
  const double in_parts = 2 * (ranks - 1) / ranks * vector;
  const double fixed = slowest_exchange_us(stage);
  const auto exchange = [&](int subtrees) {
    return fixed +
           std::min(message_us(stage.link, at_once * subtrees),
                    2 * stage.link.latency_us + in_parts * subtrees / stage.link.bytes_per_us);
  };
  const double layers = stage.layers.size();
  StepTime time;
  time.exchange = layers * exchange(mixer);
  for (int layer = stage.layers.begin; layer < stage.layers.end; ++layer) {
    time.exchange += exchange(feed_forward * config.layer(layer).feed_forward_sums());
  }
  time.exchange += kStepExchanges * (fixed + stage.link.latency_us);
  if (stage.cuts_latents || config.layer(stage.layers.begin).joins_head_norms) {
    const double part = stage.cuts_latents ? vector : squares_bytes(config) * tokens;
    time.exchange += layers * (fixed + message_us(stage.link, part));
  }
  return time;
}

// Without the way to the next stage.
StepTime layers_time(const GroupView& group, const StageView& stage, const Fed& fed) {
  StepTime time = exchange_time(group, stage, fed.tokens);
  const Reached positions = reached(group, stage, fed.positions);
  for (const LayerPart part : {LayerPart::kMixer, LayerPart::kFeedForward}) {
    StepTime slowest;
    for (size_t rank = 0; rank < stage.loads.size(); ++rank) {
      const StepTime own = part_time(group, stage, rank, part, fed, positions);
      if (own.total() >= slowest.total()) slowest = own;
    }
    time.add(slowest);
  }
  return time;
}

StepTime fed_stage_time(const GroupView& group, const StageView& stage, const Fed& fed) {
  StepTime time = layers_time(group, stage, fed);
  if (group.stages.size() > 1) {
    const double bytes =
        static_cast<double>(group.facts.config.passed()) * sizeof(float) * fed.tokens;
    time.hops = slowest_exchange_us(stage) + message_us(stage.next_link, bytes);
  }
  return time;
}

Fed fed_of(const DecodeStep& step) {
  return {.tokens = step.streams,
          .outputs = step.streams,
          .state_reads = static_cast<double>(step.streams),
          .positions = static_cast<double>(step.positions)};
}

// How a step's streams are spread over the stages, which work in parallel.
DecodeStep microstep(const GroupView& group, const DecodeStep& step) {
  const auto stages = static_cast<int>(group.stages.size());
  return {(step.streams + stages - 1) / stages, step.positions};
}

double cycle_us(const GroupView& group, const DecodeStep& step) {
  const DecodeStep micro = microstep(group, step);
  double slowest = 0;
  for (const StageView& stage : group.stages) {
    slowest = std::max(slowest, stage_time(group, stage, micro).total());
  }
  // Limited by a part's own token time, and by the slowest stage working on all `rounds` parts.
  const double rounds = std::ceil(static_cast<double>(step.streams) / micro.streams);
  return std::max(token_time(group, micro).total(), rounds * slowest);
}

// The next tokens of one sequence.
Fed fed_of_one(int tokens, int positions) {
  return {.tokens = tokens,
          .outputs = tokens,
          .state_reads = 1,
          .positions = static_cast<double>(positions)};
}

// The best over the number of guesses, which take `drafting_us(guesses)`.
template <class DraftingUs>
double best_drafted(const GroupView& group, int positions, double right, int most,
                    DraftingUs drafting_us) {
  double best = 0;
  for (int guesses = 0; guesses <= most; ++guesses) {
    double step_us = drafting_us(guesses);
    for (const StageView& stage : group.stages) {
      step_us += fed_stage_time(group, stage, fed_of_one(1 + guesses, positions)).total();
    }
    best = std::max(best, 1e6 * expected_tokens(guesses, right) / step_us);
  }
  return best;
}

}  // namespace

void StepTime::add(const StepTime& other) {
  weights += other.weights;
  state += other.state;
  kernels += other.kernels;
  compute += other.compute;
  exchange += other.exchange;
  hops += other.hops;
}

StepTime stage_time(const GroupView& group, const StageView& stage, const DecodeStep& step) {
  return fed_stage_time(group, stage, fed_of(step));
}

StepTime token_time(const GroupView& group, const DecodeStep& step) {
  StepTime time;
  for (const StageView& stage : group.stages) time.add(stage_time(group, stage, step));
  return time;
}

double tokens_per_s(const GroupView& group, const DecodeStep& step) {
  return 1e6 * step.streams / cycle_us(group, step);
}

double drafted_tokens_per_s(const GroupView& group, int positions, double right) {
  const ModelConfig& config = group.facts.config;
  const bool is_pipeline = group.stages.size() > 1;
  if (!config.has_draft_layer() || (is_pipeline && config.guesses_blocks())) return 0;
  // The draft layers by themselves, which have the embeddings and the head too.
  StageView layer = group.stages.back();
  layer.layers = {config.layers, config.end_with_draft(config.layers)};
  layer.class_layers.assign(layer.class_layers.size(), 0);
  for (int i = layer.layers.begin; i < layer.layers.end; ++i) {
    ++layer.class_layers[group.facts.class_of[static_cast<size_t>(i)]];
  }
  const auto layer_us = [&](int tokens) {
    return layers_time(group, layer, fed_of_one(tokens, positions)).total();
  };
  const int block = config.draft_block ? config.draft_block->size : 0;
  if (block > 0) {
    const double block_us = layer_us(block);
    return best_drafted(group, positions, right, std::min(block, kLayerGuessesMax),
                        [&](int) { return block_us; });
  }
  const double pass_us = layer_us(1);
  // Also without guesses it sees each token.
  return best_drafted(group, positions, right, kLayerGuessesMax,
                      [&](int guesses) { return std::max(1, guesses) * pass_us; });
}

double drafted_tokens_per_s(const GroupView& group, const GroupView& draft, int positions,
                            double right) {
  const double pass_us = token_time(draft, {1, positions}).total();
  return best_drafted(group, positions, right, kLayerGuessesMax,
                      [&](int guesses) { return guesses * pass_us; });
}

double prompt_us(const GroupView& group, int prompt_tokens, int batch_tokens_max) {
  for (const StageView& stage : group.stages) {
    for (const Machine* machine : stage.machines) {
      if (machine->operations_per_us <= 0) return 0;
    }
  }
  const auto stages = static_cast<int>(group.stages.size());
  int chunk = std::min(prompt_tokens, batch_tokens_max);
  if (stages > 1) {
    const int part = std::min(prompt_tokens, batch_tokens_max) / (2 * stages);
    chunk = std::min(chunk, std::max(kChunkMin, part));
  }
  const double chunks = std::ceil(static_cast<double>(prompt_tokens) / chunk);
  // On average a chunk attends to half of the prompt.
  const Fed fed{.tokens = chunk, .state_reads = 1, .positions = prompt_tokens / 2.0};
  double way = 0, slowest = 0;
  for (const StageView& stage : group.stages) {
    const double time = fed_stage_time(group, stage, fed).total();
    way += time;
    slowest = std::max(slowest, time);
  }
  return way + (chunks - 1) * slowest;
}

double joule_per_token(const GroupView& group, const DecodeStep& step) {
  const double cycle = cycle_us(group, step);
  const DecodeStep micro = microstep(group, step);
  const double rounds = std::ceil(static_cast<double>(step.streams) / micro.streams);
  double joule = 0;
  for (const StageView& stage : group.stages) {
    const double busy = std::min(cycle, rounds * stage_time(group, stage, micro).total());
    for (const Machine* machine : stage.machines) {
      if (machine->load_w <= 0) return 0;
      joule += (machine->load_w * busy + machine->idle_w * (cycle - busy)) / 1e6;
    }
  }
  return joule / step.streams;
}

}  // namespace lockstep

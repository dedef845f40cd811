#include "model/forward/model.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "model/forward/rope.h"
#include "model/load/stored_forms.h"

namespace lockstep {
namespace {

Result<LatentCutCase> latent_case_of(const ModelOptions& options) {
  return LatentCutCase{.layer_bytes = TRY(latent_layer_bytes(*options.source, options.config)),
                       .rows = options.config.latent.rows(),
                       .ranks = static_cast<int>(options.shares.size()),
                       .link = options.link};
}

// For people. A weight that is missing is found, with its name, when it is loaded.
void tell_whole_bytes(const LoadContext& context) {
  if (context.progress == nullptr) return;
  const auto bytes = share_bytes(context);
  context.progress->read_bytes.store(0, std::memory_order_relaxed);
  if (bytes.ok()) context.progress->whole_bytes.store(bytes.value(), std::memory_order_relaxed);
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const ModelOptions& options, Group& group,
                                           Device& device) {
  const ModelConfig& config = options.config;
  if (static_cast<int>(options.shares.size()) != group.size()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} shares were given for {} ranks",
                                                          options.shares.size(), group.size())};
  }
  const CutAlignment alignment = TRY(alignment_of(*options.source, config));
  const bool cuts = cuts_latents(options.latent_cut, TRY(latent_case_of(options)));
  Cut cut = TRY(Cut::make(config, options.shares, {alignment, cuts}));
  const BatchLimits limits{.tokens_max = options.tokens_max,
                           .page_list_entries_max = options.page_list_entries_max,
                           .pages = options.pages,
                           .vocab_size = config.vocab_size,
                           .states = config.delta ? options.states : 0,
                           .positions_max = config.positions_max,
                           .window_pages = config.reach() > 0 ? options.window_pages : 0,
                           .reach = config.reach()};
  std::unique_ptr<Model> model(new Model(options, std::move(cut), group, device, limits));
  const WeightShare share{model->cut_, group.rank(), model->layers_};
  const LoadContext context{*options.source, config, share, device, options.progress};
  tell_whole_bytes(context);
  model->weights_ = TRY(load_weights(context));
  if (config.ngrams) {
    TRY(check_constants(model->weights_.ngrams, *config.ngrams, config.vocab_size));
    if (config.ngrams->is_on_disk) TRY(model->open_ngram_files(options.source));
  }
  TRY(model->allocate());
  TRY(device.wait());
  return model;
}

Model::Model(const ModelOptions& options, Cut cut, Group& group, Device& device, BatchLimits limits)
    : config_(options.config),
      layers_(options.layers.value_or(Range{0, options.config.layers})),
      between_layers_(options.between_layers),
      overlap_(options.overlap),
      cut_(std::move(cut)),
      group_(group),
      device_(device),
      limits_(limits),
      rank_(group.rank()),
      kv_(options.kv),
      frequencies_(rope_frequencies(options.config)),
      other_frequencies_(other_rope_frequencies(options.config)) {}

// The scores of all heads of a block index count alike.
void Model::write_index_weights() {
  const auto heads = static_cast<size_t>(config_.indexer.heads);
  const std::vector<float> ones(heads * static_cast<size_t>(limits_.tokens_max), 1.0f);
  device_.write(buffers_.index_weights, std::as_bytes(std::span<const float>(ones)));
}

void Model::write_constants() {
  if (config_.architecture->indexes_blocks && buffers_.index_pages > 0) write_index_weights();
  const std::vector<float> values = pass_constants(config_);
  if (values.empty()) return;
  device_.write(buffers_.embedding_factor, std::as_bytes(std::span<const float>(values)));
}

ModelMemory Model::memory() const {
  return {.config = config_,
          .cut = cut_,
          .rank = rank_,
          .layers = layers_,
          .tokens_max = static_cast<size_t>(limits_.tokens_max),
          .pages = static_cast<size_t>(limits_.pages),
          .window_pages = static_cast<size_t>(limits_.window_pages),
          .kv = kv_,
          .page_list_entries_max = static_cast<size_t>(limits_.page_list_entries_max),
          .states = static_cast<size_t>(limits_.states)};
}

Status Model::allocate() {
  const ModelMemory memory = this->memory();
  state_ = TRY(allocate_state(memory, device_));
  recurrent_ = TRY(allocate_recurrent(memory, device_));
  buffers_ = TRY(allocate_buffers(memory, device_));
  rope_.reserve(memory.tokens_max * 2 * std::max(frequencies_.size(), other_frequencies_.size()));
  write_constants();
  entries_.resize(config_.pools.size());
  for (ListedEntries& list : entries_) {
    for (std::vector<int32_t>* words : list.all()) words->reserve(memory.tokens_max);
  }
  if (config_.compressed) last_entry_.reserve(memory.tokens_max);
  if (config_.guesses_blocks()) {
    block_batch_.reserve(limits_);
    block_end_.reserve(memory.tokens_max);
  }
  if (has_ngrams()) reserve_ngrams();
  if (config_.delta) {
    write_delta_norms();
    layer_state_.resize(delta_shape(*config_.delta, cut_, rank_).size);
    if (has_ngrams()) reserve_ngram_state();
  }
  return Ok{};
}

}  // namespace lockstep

#include "model/forward/model.h"

#include <fmt/core.h>

#include <algorithm>

#include "model/forward/rope.h"

namespace lockstep {
namespace {

Result<LatentCutCase> latent_case_of(const ModelOptions& options) {
  const LatentConfig latent = options.config.latent.value_or(LatentConfig{});
  return LatentCutCase{.layer_bytes = TRY(latent_layer_bytes(*options.source, options.config)),
                       .rows = latent.query_rank + latent.kv_rank + latent.rope,
                       .ranks = static_cast<int>(options.shares.size()),
                       .link = options.link};
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
                           .vocab_size = config.vocab_size};
  std::unique_ptr<Model> model(new Model(options, std::move(cut), group, device, limits));
  const WeightShare share{model->cut_, group.rank(), model->layers_};
  model->weights_ = TRY(load_weights(*options.source, config, share, device));
  TRY(model->allocate_state());
  TRY(model->allocate_buffers());
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
      rank_(group.rank()) {}

// A page holds its positions for all layers, so that a short sequence touches little memory.
Status Model::allocate_state() {
  const LatentConfig latent = config_.latent.value_or(LatentConfig{});
  const int kv_heads = config_.latent ? 1 : cut_.kv_heads(rank_).size();
  const int head_dim = config_.latent ? latent.kv_rank + latent.rope : config_.head_dim;
  const int value_dim = config_.latent ? latent.kv_rank : config_.head_dim;
  const size_t layer_elements = static_cast<size_t>(kv_heads) * page_head_stride(head_dim);
  const size_t page_stride = 2 * layer_elements * static_cast<size_t>(layers_.size());
  const size_t bytes = page_stride * static_cast<size_t>(limits_.pages) * sizeof(float);
  const BufferId buffer = TRY(device_.allocate(bytes, Access::kDevice));
  pages_.resize(static_cast<size_t>(config_.layers));
  for (int layer = layers_.begin; layer < layers_.end; ++layer) {
    const size_t keys = 2 * layer_elements * static_cast<size_t>(layer - layers_.begin);
    pages_[static_cast<size_t>(layer)] = {.keys = {buffer, keys},
                                          .values = {buffer, keys + layer_elements},
                                          .page_stride = page_stride,
                                          .head_dim = head_dim,
                                          .value_dim = value_dim,
                                          .kv_heads = kv_heads};
  }
  state_bytes_ = bytes;
  return Ok{};
}

Result<Slice> Model::allocate(size_t elements_per_token) {
  const size_t elements = elements_per_token * static_cast<size_t>(limits_.tokens_max);
  return Slice{TRY(device_.allocate(elements * 4, Access::kDevice)), 0};
}

Status Model::allocate_latent_buffers() {
  const LatentConfig& latent = *config_.latent;
  const auto heads = static_cast<size_t>(cut_.heads(rank_).size());
  const auto rank = static_cast<size_t>(latent.kv_rank), rope = static_cast<size_t>(latent.rope);
  buffers_.query_latent = TRY(allocate(static_cast<size_t>(latent.query_rank)));
  buffers_.kv_latent = TRY(allocate(rank + rope));
  buffers_.absorbed = TRY(allocate(heads * (rank + rope)));
  buffers_.mixed_latent = TRY(allocate(heads * rank));
  return Ok{};
}

Status Model::allocate_buffers() {
  const auto head_dim = static_cast<size_t>(config_.head_dim);
  const auto hidden = static_cast<size_t>(config_.hidden);
  const auto tokens = static_cast<size_t>(limits_.tokens_max);
  const size_t heads = static_cast<size_t>(cut_.heads(rank_).size()) * head_dim;
  const size_t kv_heads = static_cast<size_t>(cut_.kv_heads(rank_).size()) * head_dim;
  const auto ffn =
      static_cast<size_t>(std::max(cut_.ffn(rank_).size(), cut_.shared_ffn(rank_).size()));
  for (Slice* ints : {&buffers_.positions, &buffers_.list_offsets, &buffers_.page, &buffers_.slot,
                      &buffers_.rows, &buffers_.outputs, &buffers_.factors}) {
    *ints = TRY(allocate(1));
  }
  const auto entries = static_cast<size_t>(limits_.page_list_entries_max);
  buffers_.page_lists = {TRY(device_.allocate(entries * 4, Access::kDevice)), 0};
  for (Slice* wide : {&buffers_.hidden, &buffers_.normed, &buffers_.selected}) {
    *wide = TRY(allocate(hidden));
  }
  buffers_.rope = TRY(allocate(head_dim));
  buffers_.query = TRY(allocate(heads));
  buffers_.mixed = TRY(allocate(heads / head_dim * static_cast<size_t>(config_.value_dim)));
  if (config_.latent) TRY(allocate_latent_buffers());
  buffers_.key = TRY(allocate(kv_heads));
  buffers_.value = TRY(allocate(kv_heads));
  buffers_.gate = TRY(allocate(ffn));
  buffers_.up = TRY(allocate(ffn));
  const ExpertsConfig& experts = config_.experts;
  const auto chosen = static_cast<size_t>(experts.chosen);
  const size_t expert_ffn = chosen * static_cast<size_t>(cut_.expert_ffn(rank_).size());
  buffers_.scores = TRY(allocate(static_cast<size_t>(experts.count)));
  for (Slice* choice : {&buffers_.chosen, &buffers_.chosen_weights})
    *choice = TRY(allocate(chosen));
  buffers_.expert_hidden = TRY(allocate(expert_ffn));
  buffers_.expert_scratch = TRY(allocate(2 * expert_ffn));
  const size_t subtrees =
      std::max({cut_.head_shares().nodes(rank_).size(), cut_.ffn_shares().nodes(rank_).size(),
                cut_.expert_shares().nodes(rank_).size()});
  buffers_.partials = TRY(device_.allocate(subtrees * tokens * hidden * 4, Access::kHost));
  buffers_.second_partials =
      TRY(device_.allocate(subtrees * tokens / 2 * hidden * 4, Access::kHost));
  buffers_.second_sum = TRY(device_.allocate(tokens / 2 * hidden * 4, Access::kHost));
  const LatentConfig latent = config_.latent.value_or(LatentConfig{});
  const auto latents = static_cast<size_t>(latent.query_rank + latent.kv_rank + latent.rope);
  const size_t exchanged = std::max(hidden, cut_.cuts_latents() ? latents : 0);  // floats per token
  buffers_.sum = TRY(device_.allocate(tokens * exchanged * 4, Access::kHost));
  const auto vocabulary = static_cast<size_t>(has_head() ? cut_.vocabulary(rank_).size() : 0);
  buffers_.logits = TRY(device_.allocate(tokens * vocabulary * 4, Access::kHost));
  const std::vector<double> frequencies = rope_frequencies(config_);
  buffers_.frequencies = {TRY(device_.allocate(frequencies.size() * 8, Access::kDevice)), 0};
  device_.write(buffers_.frequencies, std::as_bytes(std::span<const double>(frequencies)));
  return Ok{};
}

}  // namespace lockstep

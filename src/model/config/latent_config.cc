#include "model/config/latent_config.h"

#include <algorithm>
#include <functional>

#include "kernels/kernels.h"
#include "model/config/config_fields.h"

namespace lockstep {
namespace {

// Their keys begin with `prefix`.
Status read_index_heads(const Json& file, std::string_view prefix, IndexerConfig& indexer,
                        int64_t head_dim_max = kSizeMax) {
  indexer.heads = TRY(size_or(file, fmt::format("{}_n_heads", prefix), std::nullopt));
  indexer.head_dim =
      TRY(size_or(file, fmt::format("{}_head_dim", prefix), std::nullopt, head_dim_max));
  if (int64_t{indexer.heads} * indexer.head_dim <= kSizeMax) return Ok{};
  return corrupt(fmt::format("{} indexer heads of {} elements are too large", indexer.heads,
                             indexer.head_dim));
}

// Files that lack the list may describe it by a rule, which is not read.
Status refuse_indexer_rules(const Json& file) {
  const int64_t frequency = TRY(get_int(file, "index_topk_freq")).value_or(1);
  if (frequency != 1) {
    return unsupported(fmt::format(
        "\"index_topk_freq\" is {} without \"indexer_types\", which is not supported", frequency));
  }
  const Json* pattern = find(file, "index_topk_pattern");
  if (!pattern || pattern->is_null()) return Ok{};
  return unsupported("\"index_topk_pattern\" without \"indexer_types\" is not supported");
}

Status read_indexer_types(const Json& file, ModelConfig& config) {
  constexpr LayerTypes kTypes{"indexer_types", "indexer", "full", "shared"};
  const auto share_choice = TRY(read_layer_types(file, kTypes, config.traits.size()));
  if (share_choice.empty()) return refuse_indexer_rules(file);
  for (size_t layer = 0; layer < share_choice.size(); ++layer) {
    config.traits[layer].shares_choice = share_choice[layer];
  }
  const bool shares = std::any_of(share_choice.begin(), share_choice.end(), std::identity());
  if (config.indexer.pool > 1 && shares) {
    return unsupported("\"indexer_types\" with \"shared\" is not supported with \"index_kpool\"");
  }
  if (config.traits[0].shares_choice) {
    return corrupt("\"indexer_types\" begins with \"shared\", but no layer is before the first");
  }
  return Ok{};
}

// Several positions share a key of GLM-5.3's index.
Status read_pool(const Json& file, const Architecture& architecture, IndexerConfig& indexer) {
  const auto otherwise = architecture.has_streams ? std::nullopt : std::optional<int64_t>(1);
  indexer.pool = TRY(size_or(file, "index_kpool", otherwise, kPagePositions));
  if (kPagePositions % indexer.pool != 0) {
    return unsupported(fmt::format("\"index_kpool\" is {}, only divisors of {} are supported",
                                   indexer.pool, kPagePositions));
  }
  if (indexer.chosen < indexer.pool) {
    return corrupt(fmt::format("\"index_topk\" is {}, it must be at least \"index_kpool\", {}",
                               indexer.chosen, indexer.pool));
  }
  indexer.chosen -= indexer.chosen % indexer.pool;
  if (indexer.pool == 1) return Ok{};
  for (const char* key : {"index_kpool_compress", "index_kpool_always_select_tail"}) {
    if (TRY(get_bool(file, key)).value_or(true)) continue;
    return unsupported(fmt::format("\"{}\": false is not supported", key));
  }
  return Ok{};
}

// Layers of this pool choose among their entries by an index.
constexpr int kChoosingPool = 4;

Result<int> pool_of(const Json& ratio) {
  const int64_t* pool = ratio.if_int64();
  if (pool == nullptr || *pool < 0) {
    return corrupt("\"compress_ratios\" must be a list of numbers that are not negative");
  }
  const bool fits = *pool == 0 || kPagePositions % *pool == 0 || *pool % kPagePositions == 0;
  if (fits && *pool != 1 && *pool <= kEntryPoolMax) return static_cast<int>(*pool);
  return unsupported(
      fmt::format("\"compress_ratios\" has {}, only divisors and multiples of {} up to {} are "
                  "supported",
                  *pool, kPagePositions, kEntryPoolMax));
}

// The list goes on over the layers that predict further tokens.
Status read_pools(const Json& file, ModelConfig& config) {
  const Json* ratios = find(file, "compress_ratios");
  const auto layers = static_cast<size_t>(config.layers);
  if (!ratios || !ratios->is_array() || ratios->get_array().size() < layers) {
    return corrupt(fmt::format("\"compress_ratios\" must be a list of {} layers", layers));
  }
  const int window = TRY(size_or(file, "sliding_window", std::nullopt));
  std::vector<int>& pools = config.pools;
  for (size_t layer = 0; layer < layers; ++layer) {
    const int pool = TRY(pool_of(ratios->get_array()[layer]));
    config.traits[layer].pool = pool;
    config.traits[layer].window = window;
    if (pool > 0 && std::find(pools.begin(), pools.end(), pool) == pools.end()) {
      pools.push_back(pool);
    }
  }
  for (size_t layer = layers; layer < ratios->get_array().size(); ++layer) {
    if (TRY(pool_of(ratios->get_array()[layer])) == 0) continue;
    return unsupported("\"compress_ratios\" of a layer that predicts further tokens is not 0");
  }
  std::sort(pools.begin(), pools.end());
  if (pools.size() <= size_t{kPoolKindsMax}) return Ok{};
  return unsupported(
      fmt::format("{} different \"compress_ratios\" are not supported, at most {} are",
                  pools.size(), kPoolKindsMax));
}

// Each group of heads has one latent, of which a head counts as an equal part.
Status read_groups(const Json& file, ModelConfig& config) {
  CompressedConfig& compressed = *config.compressed;
  compressed.groups = TRY(size_or(file, "o_groups", std::nullopt, kHeadGroupsMax));
  compressed.group_rank = TRY(size_or(file, "o_lora_rank", std::nullopt));
  const int64_t width = int64_t{compressed.groups} * compressed.group_rank;
  if (width > kSizeMax) {
    return corrupt(fmt::format("{} groups of {} elements are too large", compressed.groups,
                               compressed.group_rank));
  }
  if (config.heads % compressed.groups != 0 || width % config.heads != 0) {
    return unsupported(fmt::format("{} heads in {} groups of rank {} cannot be cut evenly",
                                   config.heads, compressed.groups, compressed.group_rank));
  }
  return Ok{};
}

Status read_chooser(const Json& file, ModelConfig& config) {
  const std::vector<int>& pools = config.pools;
  if (std::find(pools.begin(), pools.end(), kChoosingPool) == pools.end()) return Ok{};
  IndexerConfig& indexer = config.indexer;
  TRY(read_index_heads(file, "index", indexer));
  indexer.pool = kChoosingPool;
  indexer.chosen = TRY(size_or(file, "index_topk", std::nullopt)) * kChoosingPool;
  indexer.rope = config.latent.rope;
  indexer.rotates_pairs = true;
  if (indexer.head_dim >= config.latent.rope) return Ok{};
  return corrupt(
      fmt::format("\"index_head_dim\" is {}, it must be at least \"qk_rope_head_dim\", which is {}",
                  indexer.head_dim, config.latent.rope));
}

// All of "qk_rope_head_dim" turns. Files may say it again, as a number or as a part of the head.
Status read_turning_dims(const Json& file, ModelConfig& config) {
  config.rotary_dims = config.latent.rope;
  const int64_t dims = TRY(get_int(file, "rotary_dim")).value_or(config.rotary_dims);
  const double part = TRY(positive(file, "partial_rotary_factor", 1.0));
  const bool is_same = part == 1 || part * config.head_dim == config.rotary_dims;
  if (dims == config.rotary_dims && is_same) return Ok{};
  return unsupported(
      fmt::format("\"rotary_dim\" or \"partial_rotary_factor\" contradicts \"qk_rope_head_dim\", "
                  "which is {}",
                  config.rotary_dims));
}

Status read_given_experts(const Json& file, ModelConfig& config) {
  const int64_t given = TRY(get_int(file, "num_hash_layers")).value_or(0);
  if (given < 0 || given > config.layers) {
    return corrupt(
        fmt::format("\"num_hash_layers\" is {}, there are {} layers", given, config.layers));
  }
  for (size_t layer = 0; layer < static_cast<size_t>(given); ++layer) {
    config.traits[layer].has_given_experts = true;
  }
  return Ok{};
}

}  // namespace

Status read_latent(const Json& file, ModelConfig& config) {
  if (config.architecture->dense.mixer != Mixer::kLatentAttention) return Ok{};
  if (config.heads > kLatentHeadsMax) {
    return unsupported(fmt::format("{} heads of latent attention are not supported, at most {} are",
                                   config.heads, kLatentHeadsMax));
  }
  LatentConfig& latent = config.latent;
  const Json* rank = find(file, "q_lora_rank");
  if (rank && !rank->is_null()) latent.query_rank = TRY(size_or(file, "q_lora_rank", std::nullopt));
  latent.kv_rank = TRY(size_or(file, "kv_lora_rank", std::nullopt));
  latent.nope = TRY(size_or(file, "qk_nope_head_dim", std::nullopt));
  const bool may_rotate_nothing = config.architecture->decays_channels;
  const auto rope = TRY(get_int(file, "qk_rope_head_dim"));
  if (!may_rotate_nothing || rope != 0) {
    latent.rope = TRY(size_or(file, "qk_rope_head_dim", std::nullopt));
  }
  latent.value = TRY(size_or(file, "v_head_dim", std::nullopt));
  if (latent.rope % 2 != 0) {
    return corrupt(fmt::format("\"qk_rope_head_dim\" is {}, it must be even", latent.rope));
  }
  const float own_epsilon = config.architecture->latent_norm_epsilon;
  latent.norm_epsilon = own_epsilon > 0 ? own_epsilon : config.norm_epsilon;
  config.head_dim = latent.nope + latent.rope;
  config.value_dim = latent.value;
  config.kv_heads = config.heads;  // every head computes its own keys and values from the latent
  return Ok{};
}

Status read_indexer(const Json& file, ModelConfig& config) {
  if (!config.architecture->has_indexer) return Ok{};
  const LatentConfig& latent = config.latent;
  if (latent.query_rank == 0) {
    return unsupported("an indexer without \"q_lora_rank\" is not supported");
  }
  IndexerConfig& indexer = config.indexer;
  TRY(read_index_heads(file, "index", indexer));
  indexer.chosen = TRY(size_or(file, "index_topk", std::nullopt));
  indexer.rope = latent.rope;
  if (indexer.head_dim < latent.rope) {
    return corrupt(fmt::format(
        "\"index_head_dim\" is {}, it must be at least \"qk_rope_head_dim\", which is {}",
        indexer.head_dim, latent.rope));
  }
  if (latent.kv_rank + latent.rope > kChosenKeyMax) {
    return unsupported(
        fmt::format("latents of {} elements with an indexer are not supported, at most {} are",
                    latent.kv_rank + latent.rope, kChosenKeyMax));
  }
  indexer.rotates_pairs = TRY(get_bool(file, "indexer_rope_interleave"))
                              .value_or(config.architecture->rotates_index_pairs);
  TRY(read_pool(file, *config.architecture, indexer));
  return read_indexer_types(file, config);
}

Status read_block_index(const Json& file, ModelConfig& config) {
  if (!config.architecture->indexes_blocks) return Ok{};
  IndexerConfig& indexer = config.indexer;
  TRY(read_index_heads(file, "indexer", indexer, kHeadDimMax));
  indexer.pool = TRY(size_or(file, "indexer_compress_ratio", std::nullopt, kPagePositions));
  indexer.rope = config.rotary_dims;
  const int budget = TRY(size_or(file, "indexer_budget", std::nullopt));
  if (indexer.pool == 1 || kPagePositions % indexer.pool != 0) {
    return unsupported(
        fmt::format("\"indexer_compress_ratio\" is {}, only divisors of {} from 2 on are supported",
                    indexer.pool, kPagePositions));
  }
  if (budget < indexer.pool) {
    return corrupt(
        fmt::format("\"indexer_budget\" is {}, it must be at least \"indexer_compress_ratio\", {}",
                    budget, indexer.pool));
  }
  indexer.chosen = budget - budget % indexer.pool;
  if (indexer.head_dim < indexer.rope) {
    return corrupt(fmt::format("\"indexer_head_dim\" is {}, but {} dimensions turn",
                               indexer.head_dim, indexer.rope));
  }
  if (TRY(size_or(file, "indexer_kv_heads", 1)) != 1) {
    return unsupported("\"indexer_kv_heads\" is not 1, which is not supported");
  }
  config.pools = {indexer.pool};
  return Ok{};
}

Status read_compressed(const Json& file, ModelConfig& config) {
  if (config.architecture->dense.mixer != Mixer::kCompressedAttention) return Ok{};
  if (config.kv_heads != 1) {
    return unsupported(
        fmt::format("\"num_key_value_heads\" is {}, only 1 is supported", config.kv_heads));
  }
  LatentConfig& latent = config.latent;
  latent.query_rank = TRY(size_or(file, "q_lora_rank", std::nullopt));
  latent.rope = TRY(size_or(file, "qk_rope_head_dim", std::nullopt));
  latent.norm_epsilon = config.norm_epsilon;
  if (latent.rope % 2 != 0 || latent.rope > config.head_dim) {
    return corrupt(fmt::format("\"qk_rope_head_dim\" is {}, it must be even and at most {}",
                               latent.rope, config.head_dim));
  }
  TRY(read_turning_dims(file, config));
  config.compressed.emplace();
  config.compressed->window_theta = TRY(positive(file, "rope_theta", 10000));
  TRY(read_groups(file, config));
  TRY(read_pools(file, config));
  TRY(read_chooser(file, config));
  return read_given_experts(file, config);
}

// Yarn changes the frequencies alone, not the length of what turns.
Status read_compressed_rope(const Json& file, ModelConfig& config) {
  if (!config.compressed) return Ok{};
  config.rope_theta = TRY(positive(file, "compress_rope_theta", std::nullopt));
  if (config.yarn_rope) config.yarn_rope->attention_factor = 1;
  return Ok{};
}

}  // namespace lockstep

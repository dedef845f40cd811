// Qwen3.8-Flash-Next: several residual streams that are mixed element by element, layers that keep
// a state by the delta rule, grouped attention over blocks that an index chooses, and a table of
// n-grams. Source: modeling_qwen4_exp.py in Hugging Face transformers.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kEmbeddingAndHead[] = {
    {Role::kEmbedding, "model.embed_tokens.weight", Split::kVocabulary},
    {Role::kLogits, "lm_head.weight", Split::kVocabulary, When::kUntied},
    {Role::kLastStreamsNorm, "model.hyper_connection_mixer.hc_norm.weight", Split::kWhole},
    {Role::kLastStreamsDown, "model.hyper_connection_mixer.input_mix_weight_down.weight",
     Split::kWhole},
    {Role::kLastStreamsUp, "model.hyper_connection_mixer.input_mix_weight_up.weight",
     Split::kWhole},
};

constexpr WeightSpec kMixedStreams[] = {
    {Role::kAttentionStreamsNorm, "model.layers.{L}.attn_hyper_connection.hc_norm.weight",
     Split::kWhole},
    {Role::kAttentionStreamsDown,
     "model.layers.{L}.attn_hyper_connection.input_mix_weight_down.weight", Split::kWhole},
    {Role::kAttentionStreamsUp, "model.layers.{L}.attn_hyper_connection.input_mix_weight_up.weight",
     Split::kWhole},
    {Role::kAttentionStreamsInject,
     "model.layers.{L}.attn_hyper_connection.block_inject_weight.weight", Split::kWhole},
    {Role::kFeedForwardStreamsNorm, "model.layers.{L}.mlp_hyper_connection.hc_norm.weight",
     Split::kWhole},
    {Role::kFeedForwardStreamsDown,
     "model.layers.{L}.mlp_hyper_connection.input_mix_weight_down.weight", Split::kWhole},
    {Role::kFeedForwardStreamsUp,
     "model.layers.{L}.mlp_hyper_connection.input_mix_weight_up.weight", Split::kWhole},
    {Role::kFeedForwardStreamsInject,
     "model.layers.{L}.mlp_hyper_connection.block_inject_weight.weight", Split::kWhole},
    {Role::kIndexQueryKey, "model.layers.{L}.self_attn.indexer.index_qk_proj.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexQueryNorm, "model.layers.{L}.self_attn.indexer.q_layernorm.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexKeyNorm, "model.layers.{L}.self_attn.indexer.k_layernorm.weight", Split::kWhole,
     When::kIndexer},
    {Role::kNgramRows, "model.layers.{L}.ple.ple_embedding.ngram_embedding.shard_{P}.weight",
     Split::kTableRows, When::kNgrams},
    {Role::kNgramMultipliers, "model.layers.{L}.ple.ple_embedding.layer_multipliers", Split::kWhole,
     When::kNgrams},
    {Role::kNgramHeadRows, "model.layers.{L}.ple.ple_embedding.ngram_heads_vocab_sizes",
     Split::kWhole, When::kNgrams},
    {Role::kNgramOffsets, "model.layers.{L}.ple.ple_embedding.ngram_heads_offsets", Split::kWhole,
     When::kNgrams},
    {Role::kNgramKey, "model.layers.{L}.ple.key_proj.weight", Split::kWhole, When::kNgrams},
    {Role::kNgramValue, "model.layers.{L}.ple.value_proj.weight", Split::kWhole, When::kNgrams},
    {Role::kNgramKeyNorm, "model.layers.{L}.ple.norm_key.weight", Split::kWhole, When::kNgrams},
    {Role::kNgramQueryNorm, "model.layers.{L}.ple.norm_query.weight", Split::kWhole, When::kNgrams},
    {Role::kNgramConvolutionNorm, "model.layers.{L}.ple.norm_conv.weight", Split::kWhole,
     When::kNgrams},
    {Role::kNgramConvolution, "model.layers.{L}.ple.conv1d.weight", Split::kWhole, When::kNgrams},
};

constexpr WeightSpec kMixedDraftWeights[] = {
    {Role::kDraftTokenNorm, "mtp.pre_fc_norm_embedding.weight", Split::kWhole},
    {Role::kDraftHiddenNorm, "mtp.pre_fc_norm_hidden.weight", Split::kWhole},
    {Role::kDraftTokenInput, "mtp.fc_embedding.weight", Split::kWhole},
    {Role::kDraftHiddenInput, "mtp.fc_hidden.weight", Split::kWhole},
    {Role::kLastStreamsNorm, "mtp.hyper_connection_mixer.hc_norm.weight", Split::kWhole},
    {Role::kLastStreamsDown, "mtp.hyper_connection_mixer.input_mix_weight_down.weight",
     Split::kWhole},
    {Role::kLastStreamsUp, "mtp.hyper_connection_mixer.input_mix_weight_up.weight", Split::kWhole},
};

// The mixture of streams takes the place of the norm, which comes first.
constexpr std::span<const WeightSpec> without_norm(std::span<const WeightSpec> weights) {
  return weights.subspan(1);
}

constexpr LayerKind kMixedSparse = {.feed_forward = FeedForward::kExperts,
                                    .mixer_weights = without_norm(kGroupedAttention),
                                    .feed_forward_weights = without_norm(kScoredExperts)};

}  // namespace

constexpr Architecture kQwen4Exp = {
    .name = "Qwen4ExpForConditionalGeneration",
    .model_types = {"qwen4_exp_text", "qwen4_exp"},
    .shared = kEmbeddingAndHead,
    .dense = kMixedSparse,
    .sparse = kMixedSparse,
    .every_layer = kMixedStreams,
    .head_norms = Has::kYes,
    .recurrent = {.weights = without_norm(kDeltaMixer)},
    .gates_attention = true,
    .lowers_norms = true,
    .normalises_chosen = true,
    .has_streams = true,
    .drafts_streams = true,
    .mixes_streams = true,
    .indexes_blocks = true,
    .has_ngrams = true,
    .draft = {.prefix = "mtp.layers.0.", .weights = kMixedDraftWeights}};

}  // namespace lockstep

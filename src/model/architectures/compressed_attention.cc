// DeepSeek V4: attention over a window and over entries, each of which is made of several
// positions. Some layers choose among the entries by an index, others see all of them. Four
// residual streams; the experts of the first layers depend on the token's id. Source: DeepSeek's
// inference/model.py, and modeling_deepseek_v4.py in Hugging Face transformers.
#include "model/architectures/common_weights.h"
#include "model/architectures/tables.h"

namespace lockstep {
namespace {

constexpr WeightSpec kStreamedEnds[] = {
    {Role::kEmbedding, "model.embed_tokens.weight", Split::kVocabulary},
    {Role::kLastStreams, "model.hc_head_fn.weight", Split::kWhole},
    {Role::kLastStreamsScale, "model.hc_head_scale", Split::kWhole},
    {Role::kLastStreamsBias, "model.hc_head_base", Split::kWhole},
    {Role::kFinalNorm, "model.norm.weight", Split::kWhole},
    {Role::kLogits, "lm_head.weight", Split::kVocabulary, When::kUntied},
};

// A position's key and inputs of entries are whole on each rank: all heads use them. Heads are
// cut by whole groups.
constexpr WeightSpec kCompressedAttention[] = {
    {Role::kAttentionNorm, "model.layers.{L}.attn_norm.weight", Split::kWhole},
    {Role::kQueryDown, "model.layers.{L}.attn.wq_a.weight", Split::kWhole},
    {Role::kQueryDownNorm, "model.layers.{L}.attn.q_norm.weight", Split::kWhole},
    {Role::kQuery, "model.layers.{L}.attn.wq_b.weight", Split::kHeads},
    {Role::kSharedKey, "model.layers.{L}.attn.wkv.weight", Split::kWhole},
    {Role::kSharedKeyNorm, "model.layers.{L}.attn.kv_norm.weight", Split::kWhole},
    {Role::kSinks, "model.layers.{L}.attn.attn_sink", Split::kHeads},
    {Role::kGroupOut, "model.layers.{L}.attn.wo_a.weight", Split::kHeads},
    {Role::kAttentionOut, "model.layers.{L}.attn.wo_b.weight", Split::kHeadColumns},
    {Role::kEntryValues, "model.layers.{L}.attn.compressor.wkv.weight", Split::kWhole,
     When::kEntries},
    {Role::kEntryGates, "model.layers.{L}.attn.compressor.wgate.weight", Split::kWhole,
     When::kEntries},
    {Role::kEntryBias, "model.layers.{L}.attn.compressor.ape", Split::kWhole, When::kEntries},
    {Role::kEntryNorm, "model.layers.{L}.attn.compressor.norm.weight", Split::kWhole,
     When::kEntries},
    {Role::kIndexQuery, "model.layers.{L}.attn.indexer.wq_b.weight", Split::kWhole, When::kIndexer},
    {Role::kIndexWeights, "model.layers.{L}.attn.indexer.weights_proj.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexEntryValues, "model.layers.{L}.attn.indexer.compressor.wkv.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexEntryGates, "model.layers.{L}.attn.indexer.compressor.wgate.weight", Split::kWhole,
     When::kIndexer},
    {Role::kIndexEntryBias, "model.layers.{L}.attn.indexer.compressor.ape", Split::kWhole,
     When::kIndexer},
    {Role::kIndexEntryNorm, "model.layers.{L}.attn.indexer.compressor.norm.weight", Split::kWhole,
     When::kIndexer},
};

constexpr WeightSpec kGivenOrChosenExperts[] = {
    {Role::kFeedForwardNorm, "model.layers.{L}.ffn_norm.weight", Split::kWhole},
    {Role::kRouter, "model.layers.{L}.ffn.gate.weight", Split::kWhole},
    {Role::kRouterBias, "model.layers.{L}.ffn.gate.bias", Split::kWhole, When::kChosenExperts},
    {Role::kRouterTable, "model.layers.{L}.ffn.gate.tid2eid", Split::kWhole, When::kGivenExperts},
    {Role::kExpertGate, "model.layers.{L}.ffn.experts.{E}.w1.weight", Split::kExpertFfn},
    {Role::kExpertUp, "model.layers.{L}.ffn.experts.{E}.w3.weight", Split::kExpertFfn},
    {Role::kExpertDown, "model.layers.{L}.ffn.experts.{E}.w2.weight", Split::kExpertFfnColumns},
    {Role::kSharedGate, "model.layers.{L}.ffn.shared_experts.w1.weight", Split::kSharedFfn,
     When::kSharedExperts},
    {Role::kSharedUp, "model.layers.{L}.ffn.shared_experts.w3.weight", Split::kSharedFfn,
     When::kSharedExperts},
    {Role::kSharedDown, "model.layers.{L}.ffn.shared_experts.w2.weight", Split::kSharedFfnColumns,
     When::kSharedExperts},
};

constexpr WeightSpec kStreamedDraft[] = {
    {Role::kDraftTokenNorm, "model.layers.{L}.enorm.weight", Split::kWhole},
    {Role::kDraftHiddenNorm, "model.layers.{L}.hnorm.weight", Split::kWhole},
    {Role::kDraftTokenInput, "model.layers.{L}.e_proj.weight", Split::kWhole},
    {Role::kDraftHiddenInput, "model.layers.{L}.h_proj.weight", Split::kWhole},
    {Role::kLastStreams, "model.layers.{L}.hc_head_fn.weight", Split::kWhole},
    {Role::kLastStreamsScale, "model.layers.{L}.hc_head_scale", Split::kWhole},
    {Role::kLastStreamsBias, "model.layers.{L}.hc_head_base", Split::kWhole},
    {Role::kDraftNorm, "model.layers.{L}.norm.weight", Split::kWhole},
};

// The layers of DSpark, which guess a block of tokens.
constexpr WeightSpec kFirstOfBlock[] = {
    {Role::kDraftInput, "model.layers.{L}.main_proj.weight", Split::kWhole},
    {Role::kDraftHiddenNorm, "model.layers.{L}.main_norm.weight", Split::kWhole},
};
constexpr WeightSpec kLastOfBlock[] = {
    {Role::kLastStreams, "model.layers.{L}.hc_head_fn.weight", Split::kWhole},
    {Role::kLastStreamsScale, "model.layers.{L}.hc_head_scale", Split::kWhole},
    {Role::kLastStreamsBias, "model.layers.{L}.hc_head_base", Split::kWhole},
    {Role::kDraftNorm, "model.layers.{L}.norm.weight", Split::kWhole},
    {Role::kDraftPrevious, "model.layers.{L}.markov_head.markov_w1.weight", Split::kWhole},
    {Role::kDraftFollowing, "model.layers.{L}.markov_head.markov_w2.weight", Split::kVocabulary},
};

constexpr LayerKind kCompressedLayer = {.mixer = Mixer::kCompressedAttention,
                                        .feed_forward = FeedForward::kExperts,
                                        .mixer_weights = kCompressedAttention,
                                        .feed_forward_weights = kGivenOrChosenExperts,
                                        .scores = RouterForm::kRootSoftplus,
                                        .gating = Gating::kClippedSilu};

}  // namespace

constexpr Architecture kDeepseekV4 = {.name = "DeepseekV4ForCausalLM",
                                      .model_types = {"deepseek_v4"},
                                      .shared = kStreamedEnds,
                                      .dense = kCompressedLayer,
                                      .sparse = kCompressedLayer,
                                      .every_layer = kStreamWeights,
                                      .has_streams = true,
                                      .weighs_last_streams = true,
                                      .drafts_streams = true,
                                      .draft = {.prefix = "mtp.{D}.",
                                                .weights = kStreamedDraft,
                                                .first_of_block = kFirstOfBlock,
                                                .last_of_block = kLastOfBlock}};

}  // namespace lockstep

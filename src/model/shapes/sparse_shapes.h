// config.json of published models that attend to chosen positions, without what lockstep does not
// read. Sources: the models' repositories on Hugging Face, and copies of these files.
#pragma once

#include <string_view>

namespace lockstep {

inline constexpr std::string_view kDeepseekV32Shape = R"(
{"architectures": ["DeepseekV32ForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 129280, "hidden_size": 7168,
 "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
 "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
 "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
 "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048,
 "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8,
 "topk_group": 4, "first_k_dense_replace": 3, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.5, "max_position_embeddings": 163840,
 "rms_norm_eps": 1e-06, "rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 40,
 "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
 "mscale_all_dim": 1.0}, "tie_word_embeddings": false})";

inline constexpr std::string_view kGlm5 = R"(
{"architectures": ["GlmMoeDsaForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 154880, "hidden_size": 6144,
 "intermediate_size": 12288, "moe_intermediate_size": 2048, "num_hidden_layers": 78,
 "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 2048,
 "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
 "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048, "indexer_rope_interleave": true,
 "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1,
 "topk_group": 1, "first_k_dense_replace": 3, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.5, "max_position_embeddings": 202752,
 "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
 "tie_word_embeddings": false})";

// As GLM-5, but most layers share the choice of an earlier one.
inline constexpr std::string_view kGlm53 = R"(
{"architectures": ["GlmMoeDsaForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 154880, "hidden_size": 6144,
 "intermediate_size": 12288, "moe_intermediate_size": 2048, "num_hidden_layers": 78,
 "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 2048,
 "kv_lora_rank": 512, "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256,
 "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048, "indexer_rope_interleave": true,
 "indexer_types": ["full", "full", "full", "shared", "shared", "shared", "full", "shared",
 "shared", "shared", "full", "shared", "shared", "shared", "full", "shared", "shared", "shared",
 "full", "shared", "shared", "shared", "full", "shared", "shared", "shared", "full", "shared",
 "shared", "shared", "full", "shared", "shared", "shared", "full", "shared", "shared", "shared",
 "full", "shared", "shared", "shared", "full", "shared", "shared", "shared", "full", "shared",
 "shared", "shared", "full", "shared", "shared", "shared", "full", "shared", "shared", "shared",
 "full", "shared", "shared", "shared", "full", "shared", "shared", "shared", "full", "shared",
 "shared", "shared", "full", "shared", "shared", "shared", "full", "shared", "shared", "shared"],
 "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1,
 "topk_group": 1, "first_k_dense_replace": 3, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.5, "max_position_embeddings": 202752,
 "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
 "tie_word_embeddings": false})";

// DeepSeek-V4-Flash-0731; the kinds of layers alternate after the first two. Its three last ones
// are DSpark's.
inline constexpr std::string_view kDeepseekV4Flash = R"(
{"architectures": ["DeepseekV4ForCausalLM"], "vocab_size": 129280, "hidden_size": 4096,
 "moe_intermediate_size": 2048, "num_hidden_layers": 43, "num_nextn_predict_layers": 1,
 "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64,
 "q_lora_rank": 1024, "o_groups": 8, "o_lora_rank": 1024, "sliding_window": 128,
 "compress_ratios": [0, 0, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128,
 4, 0, 0, 0], "dspark_block_size": 5, "dspark_markov_rank": 256, "dspark_noise_token_id": 128799,
 "dspark_target_layer_ids": [40, 41, 42],
 "index_n_heads": 64, "index_head_dim": 128, "index_topk": 512, "hc_mult": 4,
 "hc_sinkhorn_iters": 20, "hc_eps": 1e-06, "n_routed_experts": 256, "n_shared_experts": 1,
 "num_experts_per_tok": 6, "norm_topk_prob": true, "routed_scaling_factor": 1.5,
 "scoring_func": "sqrtsoftplus", "num_hash_layers": 3, "swiglu_limit": 10.0,
 "max_position_embeddings": 1048576, "rms_norm_eps": 1e-06, "rope_theta": 10000,
 "compress_rope_theta": 160000, "rope_scaling": {"type": "yarn", "factor": 16,
 "original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1},
 "tie_word_embeddings": false})";

// DeepSeek-V4-Pro of April 2026, whose first two layers see all entries.
inline constexpr std::string_view kDeepseekV4Pro = R"(
{"architectures": ["DeepseekV4ForCausalLM"], "vocab_size": 129280, "hidden_size": 7168,
 "moe_intermediate_size": 3072, "num_hidden_layers": 61, "num_nextn_predict_layers": 1,
 "num_attention_heads": 128, "num_key_value_heads": 1, "head_dim": 512, "qk_rope_head_dim": 64,
 "q_lora_rank": 1536, "o_groups": 16, "o_lora_rank": 1024, "sliding_window": 128,
 "compress_ratios": [128, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4,
 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 128, 4, 0],
 "index_n_heads": 64, "index_head_dim": 128, "index_topk": 1024, "hc_mult": 4,
 "hc_sinkhorn_iters": 20, "hc_eps": 1e-06, "n_routed_experts": 384, "n_shared_experts": 1,
 "num_experts_per_tok": 6, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
 "scoring_func": "sqrtsoftplus", "num_hash_layers": 3, "swiglu_limit": 10.0,
 "max_position_embeddings": 1048576, "rms_norm_eps": 1e-06, "rope_theta": 10000,
 "compress_rope_theta": 160000, "rope_scaling": {"type": "yarn", "factor": 16,
 "original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1},
 "tie_word_embeddings": false})";

inline constexpr std::string_view kQwen38FlashNext = R"(
{"architectures": ["Qwen4ExpForConditionalGeneration"], "model_type": "qwen4_exp",
 "vocab_size": 248320, "hidden_size": 2560, "num_hidden_layers": 48, "full_attention_interval": 4,
 "num_attention_heads": 24, "num_key_value_heads": 2, "head_dim": 256, "num_experts": 512,
 "num_experts_per_tok": 10, "moe_intermediate_size": 640, "shared_expert_intermediate_size": 640,
 "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
 "linear_num_value_heads": 48, "linear_value_head_dim": 128, "output_gate_type": "sigmoid",
 "hc_count": 4, "hc_lowrank": 320, "indexer_n_heads": 4, "indexer_kv_heads": 1,
 "indexer_head_dim": 128, "indexer_budget": 2048, "indexer_compress_ratio": 4, "ngram_size": 3,
 "heads_per_ngram": 8, "ngram_vocab_size_base": 20000000, "split_ngram_parts": 128,
 "make_ngram_vocab_size_divisible_by": 128, "ple_layer_ids": [2], "ple_embed_dim": 2560,
 "ple_conv_kernel_size": 4, "mtp_num_hidden_layers": 1, "eos_token_id": 248046,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "partial_rotary_factor": 0.25,
 "rope_parameters": {"rope_type": "default", "rope_theta": 10000000,
 "partial_rotary_factor": 0.25}, "tie_word_embeddings": false})";

}  // namespace lockstep

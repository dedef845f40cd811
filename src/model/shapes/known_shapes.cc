#include "model/shapes/known_shapes.h"

#include <algorithm>
#include <iterator>

#include "model/shapes/sparse_shapes.h"

namespace lockstep {
namespace {

constexpr std::string_view kLlama321b = R"(
{"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 2048,
 "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 64, "max_position_embeddings": 131072,
 "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor":
 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings":
 8192}, "tie_word_embeddings": true})";

constexpr std::string_view kLlama323b = R"(
{"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 3072,
 "intermediate_size": 8192, "num_hidden_layers": 28, "num_attention_heads": 24,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
 "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor":
 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings":
 8192}, "tie_word_embeddings": true})";

constexpr std::string_view kLlama318b = R"(
{"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 4096,
 "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
 "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor":
 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
 "tie_word_embeddings": false})";

constexpr std::string_view kLlama3370b = R"(
{"architectures": ["LlamaForCausalLM"], "vocab_size": 128256, "hidden_size": 8192,
 "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
 "rms_norm_eps": 1e-05, "rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor":
 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192},
 "tie_word_embeddings": false})";

constexpr std::string_view kMistral7b = R"(
{"architectures": ["MistralForCausalLM"], "vocab_size": 32768, "hidden_size": 4096,
 "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 32768,
 "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": null,
 "tie_word_embeddings": false})";

constexpr std::string_view kMistralLarge123b = R"(
{"architectures": ["MistralForCausalLM"], "vocab_size": 32768, "hidden_size": 12288,
 "intermediate_size": 28672, "num_hidden_layers": 88, "num_attention_heads": 96,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 131072,
 "rms_norm_eps": 1e-05, "rope_theta": 1000000.0, "sliding_window": null,
 "tie_word_embeddings": false})";

constexpr std::string_view kDevstralSmall224b = R"(
{"architectures": ["Ministral3ForCausalLM"], "vocab_size": 131072, "hidden_size": 5120,
 "intermediate_size": 32768, "num_hidden_layers": 40, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 393216,
 "rms_norm_eps": 1e-05, "rope_parameters": {"rope_type": "yarn", "rope_theta": 100000000.0,
 "factor": 48.0, "original_max_position_embeddings": 8192, "beta_fast": 32.0, "beta_slow": 1.0,
 "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}, "sliding_window": null,
 "tie_word_embeddings": false})";

constexpr std::string_view kDevstral2123b = R"(
{"architectures": ["Ministral3ForCausalLM"], "vocab_size": 131072, "hidden_size": 12288,
 "intermediate_size": 28672, "num_hidden_layers": 88, "num_attention_heads": 96,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 262144,
 "rms_norm_eps": 1e-05, "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0,
 "factor": 64.0, "original_max_position_embeddings": 4096, "beta_fast": 4.0, "beta_slow": 1.0,
 "mscale": 1.0, "mscale_all_dim": 1.0}, "sliding_window": null, "tie_word_embeddings": false})";

constexpr std::string_view kQwen2505b = R"(
{"architectures": ["Qwen2ForCausalLM"], "vocab_size": 151936, "hidden_size": 896,
 "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
 "num_key_value_heads": 2, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
 "rope_theta": 1000000.0, "use_sliding_window": false, "tie_word_embeddings": true})";

constexpr std::string_view kQwen257b = R"(
{"architectures": ["Qwen2ForCausalLM"], "vocab_size": 152064, "hidden_size": 3584,
 "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
 "num_key_value_heads": 4, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
 "rope_theta": 1000000.0, "use_sliding_window": false, "tie_word_embeddings": false})";

constexpr std::string_view kQwen2572b = R"(
{"architectures": ["Qwen2ForCausalLM"], "vocab_size": 152064, "hidden_size": 8192,
 "intermediate_size": 29568, "num_hidden_layers": 80, "num_attention_heads": 64,
 "num_key_value_heads": 8, "max_position_embeddings": 32768, "rms_norm_eps": 1e-06,
 "rope_theta": 1000000.0, "use_sliding_window": false, "tie_word_embeddings": false})";

constexpr std::string_view kQwen306b = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 1024,
 "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": true})";

constexpr std::string_view kQwen317b = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 2048,
 "intermediate_size": 6144, "num_hidden_layers": 28, "num_attention_heads": 16,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": true})";

constexpr std::string_view kQwen34b = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 2560,
 "intermediate_size": 9728, "num_hidden_layers": 36, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": true})";

constexpr std::string_view kQwen38b = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 4096,
 "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})";

constexpr std::string_view kQwen314b = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 5120,
 "intermediate_size": 17408, "num_hidden_layers": 40, "num_attention_heads": 40,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})";

constexpr std::string_view kQwen332b = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 151936, "hidden_size": 5120,
 "intermediate_size": 25600, "num_hidden_layers": 64, "num_attention_heads": 64,
 "num_key_value_heads": 8, "head_dim": 128, "max_position_embeddings": 40960,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})";

constexpr std::string_view kQwen330bA3b = R"(
{"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 151936, "hidden_size": 2048,
 "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
 "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
 "num_experts_per_tok": 8, "decoder_sparse_step": 1, "norm_topk_prob": true,
 "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
 "tie_word_embeddings": false})";

constexpr std::string_view kQwen3235bA22b = R"(
{"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 151936, "hidden_size": 4096,
 "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 94,
 "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
 "num_experts_per_tok": 8, "decoder_sparse_step": 1, "norm_topk_prob": true,
 "max_position_embeddings": 40960, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0,
 "tie_word_embeddings": false})";

constexpr std::string_view kQwen3Coder30bA3b = R"(
{"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 151936, "hidden_size": 2048,
 "intermediate_size": 5472, "moe_intermediate_size": 768, "num_hidden_layers": 48,
 "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "num_experts": 128,
 "num_experts_per_tok": 8, "decoder_sparse_step": 1, "norm_topk_prob": true,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kQwen3Coder480b = R"(
{"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 151936, "hidden_size": 6144,
 "intermediate_size": 8192, "moe_intermediate_size": 2560, "num_hidden_layers": 62,
 "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "num_experts": 160,
 "num_experts_per_tok": 8, "decoder_sparse_step": 1, "norm_topk_prob": true,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kDeepseekV3 = R"(
{"architectures": ["DeepseekV3ForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 129280, "hidden_size": 7168,
 "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
 "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536,
 "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
 "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 8,
 "topk_group": 4, "first_k_dense_replace": 3, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.5, "max_position_embeddings": 163840,
 "rms_norm_eps": 1e-06, "rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 40,
 "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
 "mscale_all_dim": 1.0}, "tie_word_embeddings": false})";

constexpr std::string_view kKimiK2 = R"(
{"architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 163840, "hidden_size": 7168,
 "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
 "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.827, "max_position_embeddings": 131072,
 "rms_norm_eps": 1e-06, "rope_theta": 50000.0, "rope_scaling": {"type": "yarn", "factor": 32.0,
 "original_max_position_embeddings": 4096, "beta_fast": 1.0, "beta_slow": 1, "mscale": 1.0,
 "mscale_all_dim": 1.0}, "tie_word_embeddings": false})";

constexpr std::string_view kKimiK2Thinking = R"(
{"architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 163840, "hidden_size": 7168,
 "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
 "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.827, "max_position_embeddings": 262144,
 "rms_norm_eps": 1e-05, "rope_theta": 50000.0, "rope_scaling": {"type": "yarn", "factor": 64.0,
 "original_max_position_embeddings": 4096, "beta_fast": 1.0, "beta_slow": 1, "mscale": 1.0,
 "mscale_all_dim": 1.0}, "tie_word_embeddings": false})";

constexpr std::string_view kKimiK25 = R"(
{"architectures": ["DeepseekV3ForCausalLM"], "vocab_size": 163840, "hidden_size": 7168,
 "intermediate_size": 18432, "moe_intermediate_size": 2048, "num_hidden_layers": 61,
 "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 384,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
 "norm_topk_prob": true, "routed_scaling_factor": 2.827, "max_position_embeddings": 262144,
 "rms_norm_eps": 1e-05, "rope_theta": 50000.0, "rope_scaling": {"type": "yarn", "factor": 64.0,
 "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0,
 "mscale_all_dim": 1.0}, "tie_word_embeddings": false})";

constexpr std::string_view kGptOss20b = R"(
{"architectures": ["GptOssForCausalLM"], "vocab_size": 201088, "hidden_size": 2880,
 "intermediate_size": 2880, "num_hidden_layers": 24, "num_attention_heads": 64,
 "num_key_value_heads": 8, "head_dim": 64, "attention_bias": true, "num_local_experts": 32,
 "num_experts_per_tok": 4, "swiglu_limit": 7.0, "sliding_window": 128, "layer_types":
 ["sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
 "max_position_embeddings": 131072, "initial_context_length": 4096, "rms_norm_eps": 1e-05,
 "rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32.0,
 "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "truncate":
 false}, "tie_word_embeddings": false})";

constexpr std::string_view kGptOss120b = R"(
{"architectures": ["GptOssForCausalLM"], "vocab_size": 201088, "hidden_size": 2880,
 "intermediate_size": 2880, "num_hidden_layers": 36, "num_attention_heads": 64,
 "num_key_value_heads": 8, "head_dim": 64, "attention_bias": true, "num_local_experts": 128,
 "num_experts_per_tok": 4, "swiglu_limit": 7.0, "sliding_window": 128, "layer_types":
 ["sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention",
 "sliding_attention", "full_attention", "sliding_attention", "full_attention"],
 "max_position_embeddings": 131072, "initial_context_length": 4096, "rms_norm_eps": 1e-05,
 "rope_theta": 150000, "rope_scaling": {"rope_type": "yarn", "factor": 32.0,
 "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "truncate":
 false}, "tie_word_embeddings": false})";

constexpr std::string_view kGlm45Air = R"(
{"architectures": ["Glm4MoeForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 151552, "hidden_size": 4096,
 "intermediate_size": 10944, "moe_intermediate_size": 1408, "num_hidden_layers": 46,
 "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true,
 "use_qk_norm": false, "partial_rotary_factor": 0.5, "n_routed_experts": 128,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 1, "norm_topk_prob": true, "routed_scaling_factor": 1.0,
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 1000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kGlm45 = R"(
{"architectures": ["Glm4MoeForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 151552, "hidden_size": 5120,
 "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 92,
 "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true,
 "use_qk_norm": true, "partial_rotary_factor": 0.5, "n_routed_experts": 160,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 3, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-05, "rope_theta": 1000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kGlm46 = R"(
{"architectures": ["Glm4MoeForCausalLM"],
 "num_nextn_predict_layers": 1, "vocab_size": 151552, "hidden_size": 5120,
 "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_hidden_layers": 92,
 "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true,
 "use_qk_norm": true, "partial_rotary_factor": 0.5, "n_routed_experts": 160,
 "n_shared_experts": 1, "num_experts_per_tok": 8, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 3, "norm_topk_prob": true, "routed_scaling_factor": 2.5,
 "max_position_embeddings": 202752, "rms_norm_eps": 1e-05, "rope_theta": 1000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kGlm47Flash = R"(
{"architectures": ["Glm4MoeLiteForCausalLM"], "vocab_size": 154880, "hidden_size": 2048,
 "intermediate_size": 10240, "moe_intermediate_size": 1536, "num_hidden_layers": 47,
 "num_attention_heads": 20, "num_key_value_heads": 20, "q_lora_rank": 768, "kv_lora_rank": 512,
 "qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "n_routed_experts": 64,
 "n_shared_experts": 1, "num_experts_per_tok": 4, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 1, "norm_topk_prob": true, "routed_scaling_factor": 1.8,
 "max_position_embeddings": 202752, "rms_norm_eps": 1e-05, "rope_theta": 1000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kMiniMaxM2Shape = R"(
{"architectures": ["MiniMaxM2ForCausalLM"], "vocab_size": 200064, "hidden_size": 3072,
 "intermediate_size": 1536, "num_hidden_layers": 62, "num_attention_heads": 48,
 "num_key_value_heads": 8, "head_dim": 128, "rotary_dim": 64, "use_qk_norm": true,
 "num_local_experts": 256, "num_experts_per_tok": 8, "scoring_func": "sigmoid",
 "use_routing_bias": true, "max_position_embeddings": 196608, "rms_norm_eps": 1e-06,
 "rope_theta": 5000000, "tie_word_embeddings": false})";

constexpr std::string_view kGemma431b = R"(
{"architectures": ["Gemma4ForCausalLM"], "vocab_size": 262144, "hidden_size": 5376,
 "intermediate_size": 21504, "num_hidden_layers": 60, "num_attention_heads": 32,
 "num_key_value_heads": 16, "num_global_key_value_heads": 4, "head_dim": 256,
 "global_head_dim": 512, "attention_k_eq_v": true, "sliding_window": 1024,
 "hidden_activation": "gelu_pytorch_tanh", "final_logit_softcapping": 30.0, "layer_types": [
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_parameters":
 {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type":
 "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
 "tie_word_embeddings": true})";

constexpr std::string_view kQwen3Next80b = R"(
{"architectures": ["Qwen3NextForCausalLM"],
 "mtp_num_hidden_layers": 1, "vocab_size": 151936, "hidden_size": 2048,
 "intermediate_size": 5120, "num_hidden_layers": 48, "num_attention_heads": 16,
 "num_key_value_heads": 2, "head_dim": 256, "full_attention_interval": 4,
 "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_key_head_dim": 128,
 "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "num_experts": 512,
 "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
 "norm_topk_prob": true, "partial_rotary_factor": 0.25, "max_position_embeddings": 262144,
 "rms_norm_eps": 1e-06, "rope_theta": 10000000, "tie_word_embeddings": false})";

constexpr std::string_view kQwen3527b = R"(
{"architectures": ["Qwen3_5ForConditionalGeneration"], "mtp_num_hidden_layers": 1,
 "vocab_size": 248320,
 "hidden_size": 5120, "num_hidden_layers": 64, "num_attention_heads": 24,
 "num_key_value_heads": 4, "head_dim": 256, "attn_output_gate": true,
 "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 48,
 "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
 "intermediate_size": 17408, "partial_rotary_factor": 0.25,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kQwen3535bA3b = R"(
{"architectures": ["Qwen3_5MoeForConditionalGeneration"], "mtp_num_hidden_layers": 1,
 "vocab_size": 248320,
 "hidden_size": 2048, "num_hidden_layers": 40, "num_attention_heads": 16,
 "num_key_value_heads": 2, "head_dim": 256, "attn_output_gate": true,
 "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 32,
 "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
 "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 512,
 "shared_expert_intermediate_size": 512, "partial_rotary_factor": 0.25,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kQwen35122bA10b = R"(
{"architectures": ["Qwen3_5MoeForConditionalGeneration"], "mtp_num_hidden_layers": 1,
 "vocab_size": 248320,
 "hidden_size": 3072, "num_hidden_layers": 48, "num_attention_heads": 32,
 "num_key_value_heads": 2, "head_dim": 256, "attn_output_gate": true,
 "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 64,
 "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
 "num_experts": 256, "num_experts_per_tok": 8, "moe_intermediate_size": 1024,
 "shared_expert_intermediate_size": 1024, "partial_rotary_factor": 0.25,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kQwen35397bA17b = R"(
{"architectures": ["Qwen3_5MoeForConditionalGeneration"], "mtp_num_hidden_layers": 1,
 "vocab_size": 248320,
 "hidden_size": 4096, "num_hidden_layers": 60, "num_attention_heads": 32,
 "num_key_value_heads": 2, "head_dim": 256, "attn_output_gate": true,
 "full_attention_interval": 4, "linear_num_key_heads": 16, "linear_num_value_heads": 64,
 "linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4,
 "num_experts": 512, "num_experts_per_tok": 10, "moe_intermediate_size": 1024,
 "shared_expert_intermediate_size": 1024, "partial_rotary_factor": 0.25,
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_theta": 10000000,
 "tie_word_embeddings": false})";

constexpr std::string_view kKimiLinear48b = R"(
{"architectures": ["KimiLinearForCausalLM"], "vocab_size": 163840, "hidden_size": 2304,
 "intermediate_size": 9216, "moe_intermediate_size": 1024, "num_hidden_layers": 27,
 "num_attention_heads": 32, "num_key_value_heads": 32, "kv_lora_rank": 512,
 "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "mla_use_nope": true,
 "linear_attn_config": {"full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128,
 "kda_layers": [1, 2, 3, 5, 6, 7, 9, 10, 11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25, 26],
 "num_heads": 32, "short_conv_kernel_size": 4}, "num_experts": 256,
 "num_experts_per_token": 8, "num_shared_experts": 1, "num_expert_group": 1, "topk_group": 1,
 "first_k_dense_replace": 1, "moe_renormalize": true, "routed_scaling_factor": 2.446,
 "model_max_length": 1048576, "rms_norm_eps": 1e-05, "tie_word_embeddings": false})";

// The context is that of GLM-5: the published file was not at hand.
constexpr std::string_view kGlm53Flash = R"(
{"architectures": ["Glm5NextForConditionalGeneration"], "vocab_size": 154880, "hidden_size": 4096,
 "intermediate_size": 12288, "moe_intermediate_size": 2048, "num_hidden_layers": 45,
 "num_nextn_predict_layers": 1, "num_attention_heads": 64, "num_key_value_heads": 64,
 "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 256, "qk_rope_head_dim": 0,
 "v_head_dim": 256, "mla_use_nope": true, "linear_attn_config": {"head_dim": 128, "num_heads": 64,
 "short_conv_kernel_size": 4, "gate_lower_bound": -5.0}, "full_attention_interval": 4,
 "index_n_heads": 32, "index_head_dim": 128, "index_topk": 2048, "index_kpool": 4, "mhc": true,
 "hc_mult": 4, "hc_sinkhorn_iters": 20, "hc_eps": 1e-06, "swiglu_limit": 10.0, "n_routed_experts":
 288, "num_experts_per_tok": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1,
 "first_k_dense_replace": 3, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "scoring_func":
 "sigmoid", "max_position_embeddings": 202752, "rms_norm_eps": 1e-05, "tie_word_embeddings":
 false})";

constexpr std::string_view kGemma426bA4b = R"(
{"architectures": ["Gemma4ForCausalLM"], "vocab_size": 262144, "hidden_size": 2816,
 "intermediate_size": 2112, "num_hidden_layers": 30, "num_attention_heads": 16,
 "num_key_value_heads": 8, "num_global_key_value_heads": 2, "head_dim": 256, "global_head_dim":
 512, "attention_k_eq_v": true, "sliding_window": 1024, "hidden_activation": "gelu_pytorch_tanh",
 "final_logit_softcapping": 30.0, "enable_moe_block": true, "num_experts": 128, "top_k_experts": 8,
 "moe_intermediate_size": 704, "layer_types": ["sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
 "max_position_embeddings": 262144, "rms_norm_eps": 1e-06, "rope_parameters": {"full_attention":
 {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
 "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}, "tie_word_embeddings":
 true})";

constexpr std::string_view kGemma4E2b = R"(
{"architectures": ["Gemma4ForCausalLM"], "vocab_size": 262144, "vocab_size_per_layer_input":
 262144, "hidden_size": 1536, "hidden_size_per_layer_input": 256, "intermediate_size": 6144,
 "use_double_wide_mlp": true, "num_hidden_layers": 35, "num_kv_shared_layers": 20,
 "num_attention_heads": 8, "num_key_value_heads": 1, "head_dim": 256, "global_head_dim": 512,
 "attention_k_eq_v": false, "sliding_window": 512, "hidden_activation": "gelu_pytorch_tanh",
 "final_logit_softcapping": 30.0, "layer_types": ["sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "full_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "full_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "full_attention"], "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "rope_parameters":
 {"full_attention": {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type":
 "proportional"}, "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}},
 "tie_word_embeddings": true})";

constexpr std::string_view kGemma4E4b = R"(
{"architectures": ["Gemma4ForCausalLM"], "vocab_size": 262144, "vocab_size_per_layer_input":
 262144, "hidden_size": 2560, "hidden_size_per_layer_input": 256, "intermediate_size": 10240,
 "use_double_wide_mlp": false, "num_hidden_layers": 42, "num_kv_shared_layers": 18,
 "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 256, "global_head_dim": 512,
 "attention_k_eq_v": false, "sliding_window": 512, "hidden_activation": "gelu_pytorch_tanh",
 "final_logit_softcapping": 30.0, "layer_types": ["sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "full_attention", "sliding_attention", "sliding_attention",
 "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"],
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "rope_parameters": {"full_attention":
 {"partial_rotary_factor": 0.25, "rope_theta": 1000000.0, "rope_type": "proportional"},
 "sliding_attention": {"rope_theta": 10000.0, "rope_type": "default"}}, "tie_word_embeddings":
 true})";

constexpr KnownShape kShapes[] = {
    {"llama-3.2-1b", "meta-llama/Llama-3.2-1B-Instruct", kLlama321b},
    {"llama-3.2-3b", "meta-llama/Llama-3.2-3B-Instruct", kLlama323b},
    {"llama-3.1-8b", "meta-llama/Llama-3.1-8B-Instruct", kLlama318b},
    {"llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct", kLlama3370b},
    {"mistral-7b", "mistralai/Mistral-7B-Instruct-v0.3", kMistral7b},
    {"mistral-large-123b", "mistralai/Mistral-Large-Instruct-2411", kMistralLarge123b},
    {"devstral-small-2-24b", "mistralai/Devstral-Small-2-24B-Instruct-2512", kDevstralSmall224b},
    {"devstral-2-123b", "mistralai/Devstral-2-123B-Instruct-2512", kDevstral2123b},
    {"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct", kQwen2505b},
    {"qwen2.5-7b", "Qwen/Qwen2.5-7B-Instruct", kQwen257b},
    {"qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct", kQwen2572b},
    {"qwen3-0.6b", "Qwen/Qwen3-0.6B", kQwen306b},
    {"qwen3-1.7b", "Qwen/Qwen3-1.7B", kQwen317b},
    {"qwen3-4b", "Qwen/Qwen3-4B", kQwen34b},
    {"qwen3-8b", "Qwen/Qwen3-8B", kQwen38b},
    {"qwen3-14b", "Qwen/Qwen3-14B", kQwen314b},
    {"qwen3-32b", "Qwen/Qwen3-32B", kQwen332b},
    {"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B", kQwen330bA3b},
    {"qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B", kQwen3235bA22b},
    {"qwen3-coder-30b-a3b", "Qwen/Qwen3-Coder-30B-A3B-Instruct", kQwen3Coder30bA3b},
    {"qwen3-coder-480b", "Qwen/Qwen3-Coder-480B-A35B-Instruct", kQwen3Coder480b},
    {"deepseek-v3", "deepseek-ai/DeepSeek-V3", kDeepseekV3},
    {"deepseek-r1", "deepseek-ai/DeepSeek-R1", kDeepseekV3},
    {"deepseek-v3.1", "deepseek-ai/DeepSeek-V3.1", kDeepseekV3},
    {"kimi-k2", "moonshotai/Kimi-K2-Instruct", kKimiK2},
    {"kimi-k2-thinking", "moonshotai/Kimi-K2-Thinking", kKimiK2Thinking},
    {"kimi-k2.5", "moonshotai/Kimi-K2.5", kKimiK25},
    {"gpt-oss-20b", "openai/gpt-oss-20b", kGptOss20b},
    {"gpt-oss-120b", "openai/gpt-oss-120b", kGptOss120b},
    {"glm-4.5-air", "zai-org/GLM-4.5-Air", kGlm45Air},
    {"glm-4.5", "zai-org/GLM-4.5", kGlm45},
    {"glm-4.6", "zai-org/GLM-4.6", kGlm46},
    {"glm-4.7-flash", "zai-org/GLM-4.7-Flash", kGlm47Flash},
    {"minimax-m2", "MiniMaxAI/MiniMax-M2", kMiniMaxM2Shape},
    {"gemma-4-31b", "google/gemma-4-31B-it", kGemma431b},
    {"kimi-linear-48b", "moonshotai/Kimi-Linear-48B-A3B-Instruct", kKimiLinear48b},
    {"qwen3-next-80b-a3b", "Qwen/Qwen3-Next-80B-A3B-Instruct", kQwen3Next80b},
    {"qwen3-coder-next", "Qwen/Qwen3-Coder-Next", kQwen3Next80b},
    {"qwen3.5-27b", "Qwen/Qwen3.5-27B", kQwen3527b},
    {"qwen3.8-27b", "Qwen/Qwen3.8-27B", kQwen3527b},
    {"qwen3.5-35b-a3b", "Qwen/Qwen3.5-35B-A3B", kQwen3535bA3b},
    {"qwen3.5-122b-a10b", "Qwen/Qwen3.5-122B-A10B", kQwen35122bA10b},
    {"qwen3.5-397b-a17b", "Qwen/Qwen3.5-397B-A17B", kQwen35397bA17b},
    {"gemma-4-26b-a4b", "google/gemma-4-26B-A4B-it", kGemma426bA4b},
    {"gemma-4-e4b", "google/gemma-4-E4B-it", kGemma4E4b},
    {"gemma-4-e2b", "google/gemma-4-E2B-it", kGemma4E2b},
    {"deepseek-v3.2", "deepseek-ai/DeepSeek-V3.2", kDeepseekV32Shape},
    {"glm-5", "zai-org/GLM-5", kGlm5},
    {"glm-5.2", "zai-org/GLM-5.2", kGlm53},
    {"glm-5.3", "zai-org/GLM-5.3", kGlm53},
    {"glm-5.3-flash", "zai-org/GLM-5.3-Flash", kGlm53Flash},
    {"deepseek-v4-flash", "deepseek-ai/DeepSeek-V4-Flash", kDeepseekV4Flash},
    {"deepseek-v4-pro", "deepseek-ai/DeepSeek-V4-Pro", kDeepseekV4Pro},
    {"qwen3.8-flash-next", "Qwen/Qwen3.8-Flash-Next", kQwen38FlashNext},
};

}  // namespace

std::span<const KnownShape> known_shapes() {
  return kShapes;
}

const KnownShape* find_known_shape(std::string_view name) {
  const auto* found = std::find_if(std::begin(kShapes), std::end(kShapes),
                                   [&](const KnownShape& shape) { return shape.name == name; });
  return found == std::end(kShapes) ? nullptr : found;
}

}  // namespace lockstep

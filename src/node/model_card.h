// ModelCard: what a model is, as far as its config and the tables of its files say: for clients
// that want to know what they talk to. Pure reading; no weight is looked at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

struct ModelCard {
  std::string architecture{};  // "LlamaForCausalLM"; empty: what it is could not be read
  std::string format{};        // "safetensors" or "gguf"
  // As most of its weights are stored: "BF16", "Q4_0", "MLX 4 bit, group 64"; empty: not known
  // here, where the weights may lie on other nodes.
  std::string stored_format{};
  uint64_t parameters = 0;
  uint64_t file_bytes = 0;  // 0: not known here
  int layers = 0;
  int hidden = 0;
  int ffn = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  int positions_max = 0;
  int experts = 0;
  int chosen_experts = 0;
  bool is_embedding = false;  // it says itself that it was made for embeddings
  std::string digest{};       // 64 hex digits: others for another model; the same on every machine
  int64_t modified_us = 0;    // Unix time
};

// As much as can be read; what is wrong with a model its loader says.
ModelCard read_model_card(const std::filesystem::path& path);

}  // namespace lockstep

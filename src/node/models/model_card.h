// ModelCard: facts about a model from its config and its files' tables, for clients that ask. Reads
// no weights. Pure reading.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep {

struct ModelCard {
  std::string architecture{};  // "LlamaForCausalLM"; empty: could not be read
  std::string format{};        // "safetensors" or "gguf"
  // How most of its weights are stored: "BF16", "Q4_0", "MLX 4 bit, group 64"; empty: not known
  // here, the weights may be on other nodes.
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
  bool is_embedding = false;  // its files say that it was made for embeddings
  std::string digest{};       // 64 hex digits that differ between models; the same on every machine
  int64_t modified_us = 0;    // Unix time
};

// As much as can be read; the loader reports what is wrong with a model.
ModelCard read_model_card(const std::filesystem::path& path);

}  // namespace lockstep

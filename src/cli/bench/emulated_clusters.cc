#include "cli/bench/emulated_clusters.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "base/hash.h"
#include "model/load/shape_model.h"
#include "model/load/weight_table.h"
#include "weights/safetensors/safetensors_writer.h"

namespace lockstep {
namespace {

// A token reads some 30 MB of the dense model and 14 MB of the other.
constexpr std::string_view kDense = R"(
{"architectures": ["Qwen3ForCausalLM"], "vocab_size": 2048, "hidden_size": 512,
 "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 16,
 "num_key_value_heads": 4, "head_dim": 32, "max_position_embeddings": 4096,
 "rms_norm_eps": 1e-06, "rope_theta": 1000000, "tie_word_embeddings": false})";

constexpr std::string_view kExperts = R"(
{"architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 2048, "hidden_size": 256,
 "intermediate_size": 1024, "moe_intermediate_size": 256, "num_hidden_layers": 6,
 "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 32, "num_experts": 32,
 "num_experts_per_tok": 4, "decoder_sparse_step": 1, "norm_topk_prob": true,
 "max_position_embeddings": 4096, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
 "tie_word_embeddings": false})";

// With a draft layer, which has experts.
constexpr std::string_view kDrafts = R"(
{"architectures": ["Glm4MoeForCausalLM"], "vocab_size": 2048, "hidden_size": 512,
 "intermediate_size": 1024, "moe_intermediate_size": 256, "num_hidden_layers": 6,
 "first_k_dense_replace": 6, "num_nextn_predict_layers": 1, "num_attention_heads": 16,
 "num_key_value_heads": 4, "head_dim": 32, "n_routed_experts": 4, "n_shared_experts": 1,
 "num_experts_per_tok": 2, "max_position_embeddings": 4096, "rms_norm_eps": 1e-06,
 "rope_theta": 1000000, "tie_word_embeddings": false})";

// Operations whose time is worth modelling.
constexpr double kKernelUs = 20;

// Adds nothing to the hidden state.
bool is_last_of_part(Role role) {
  return role == Role::kAttentionOut || role == Role::kDown || role == Role::kExpertDown ||
         role == Role::kSharedDown;
}

// Each token is followed by the next number: the head's row of a token is the embedding of the one
// before it, and no layer adds anything. The draft layer hands the embedding of its token on, so
// that its guess is the number after that.
std::vector<float> planted_values(const Weight& weight) {
  const auto rows = static_cast<size_t>(weight.rows), columns = static_cast<size_t>(weight.columns);
  const bool is_norm = weight.is_vector && weight.role != Role::kRouterBias;
  std::vector<float> values(rows * columns, is_norm ? 1.0f : 0.0f);
  if (weight.is_vector || is_last_of_part(weight.role)) return values;
  if (weight.role == Role::kDraftInput) {
    for (size_t row = 0; row < rows; ++row) values[row * columns + row] = 1;
    return values;
  }
  uint64_t state = weight.role == Role::kLogits ? static_cast<uint64_t>(Role::kEmbedding)
                                                : static_cast<uint64_t>(weight.role);
  for (float& value : values) value = next_random(state) % 2 == 0 ? 1.0f : -1.0f;
  if (weight.role == Role::kLogits) {
    std::rotate(values.begin(), values.end() - static_cast<ptrdiff_t>(columns), values.end());
  }
  return values;
}

Status write_planted_model(const std::filesystem::path& folder) {
  TRY(write_new_file(folder / "config.json", kDrafts));
  ModelConfig config = TRY(parse_config(kDrafts));
  add_draft_layer(config);
  const std::vector<Weight> table = weight_table(config);
  std::vector<PlannedTensor> tensors;
  for (const Weight& weight : table) {
    std::vector<int64_t> shape{weight.rows};
    if (!weight.is_vector) shape.push_back(weight.columns);
    tensors.push_back({.name = weight.name, .dtype = DType::kF32, .shape = std::move(shape)});
  }
  SafetensorsWriter writer = TRY(SafetensorsWriter::create(folder, std::move(tensors)));
  for (size_t i = 0; i < table.size(); ++i) {
    TRY(writer.write(i, 0, std::as_bytes(std::span<const float>(planted_values(table[i])))));
  }
  return writer.finish();
}

EmulatedMachine reads(double gb_s, double memory = 2) {
  return {.read_gb_s = gb_s, .kernel_us = kKernelUs, .memory = memory};
}

}  // namespace

std::span<const EmulatedCluster> emulated_clusters() {
  static const std::vector<EmulatedCluster> kClusters{
      {"dense", {reads(0.3), reads(0.3)}},
      {"dense", {reads(0.3), reads(0.3)}, 300, 0.05},
      {"dense", {reads(0.3), reads(0.3)}, 3000},
      {"dense", {reads(0.4), reads(0.2)}, 100},
      {"dense", {reads(0.45), reads(0.15)}, 1000},
      {"dense", {reads(0.3), reads(0.3), reads(0.3)}, 300, 0.25},
      {"dense", {reads(0.3), reads(0.3), reads(0.3), reads(0.3)}, 50},
      {"dense", {reads(0.3, 0.6), reads(0.3, 0.6), reads(0.3, 0.6), reads(0.3, 0.6)}, 1000, 0.25},
      {"dense", {reads(0.4, 0.7), reads(0.4, 0.7), reads(0.2), reads(0.2)}, 300, 0.25},
      {"experts", {reads(0.15), reads(0.15)}, 100},
      {"experts", {reads(0.2), reads(0.15), reads(0.1)}, 500, 0.1},
      {"experts", {reads(0.15, 0.6), reads(0.15, 0.6), reads(0.1, 0.6), reads(0.1, 0.6)}, 2000},
      {"drafts", {reads(4), reads(4)}, 50},
      {"drafts", {reads(4), reads(4)}, 300},
      {"drafts", {reads(2), reads(2), reads(2)}, 50},
      {"drafts", {reads(2), reads(2), reads(2)}, 300},
  };
  return kClusters;
}

std::string emulated_devices(std::span<const EmulatedMachine> machines) {
  std::string text;
  for (const EmulatedMachine& machine : machines) {
    text += fmt::format("{}slowed:{}/{}", text.empty() ? "" : ",", machine.read_gb_s,
                        machine.kernel_us);
  }
  return text;
}

std::string cluster_text(const EmulatedCluster& cluster) {
  std::string text;
  for (const EmulatedMachine& machine : cluster.machines) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", machine.read_gb_s);
  }
  text += fmt::format(" GB/s; {} us", cluster.delay_us);
  if (cluster.gbit_s > 0) text += fmt::format(", {} Gbit/s", cluster.gbit_s);
  return text;
}

Result<EmulatedModels> EmulatedModels::make() {
  std::string folder = std::filesystem::temp_directory_path() / "lockstep-placement-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return Error{ErrorCode::kInternal, fmt::format("cannot create the folder {}", folder)};
  }
  return EmulatedModels(std::move(folder));
}

EmulatedModels::~EmulatedModels() {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

Result<std::string> EmulatedModels::name_of(std::string_view model) const {
  LOCKSTEP_CHECK(model == "dense" || model == "experts" || model == "drafts");
  if (model == "drafts") {
    const std::filesystem::path folder = std::filesystem::path(folder_) / model;
    if (std::filesystem::create_directory(folder)) TRY(write_planted_model(folder));
    return folder.string();
  }
  const std::string path = fmt::format("{}/{}.json", folder_, model);
  std::ofstream file(path);
  file << (model == "dense" ? kDense : kExperts);
  if (!file.flush()) return Error{ErrorCode::kInternal, fmt::format("cannot write {}", path)};
  return shape_model_text({.shape = path});
}

}  // namespace lockstep

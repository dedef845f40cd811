#include "cli/bench/emulated_clusters.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/check.h"
#include "model/load/shape_model.h"

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

// Operations whose time is worth modelling.
constexpr double kKernelUs = 20;

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
  LOCKSTEP_CHECK(model == "dense" || model == "experts");
  const std::string path = fmt::format("{}/{}.json", folder_, model);
  std::ofstream file(path);
  file << (model == "dense" ? kDense : kExperts);
  if (!file.flush()) return Error{ErrorCode::kInternal, fmt::format("cannot write {}", path)};
  return shape_model_text({.shape = path});
}

}  // namespace lockstep

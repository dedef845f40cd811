#include "node/models/model_card.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>

#include "base/crypto/hasher.h"
#include "json/json_file.h"
#include "model/config/gguf_config.h"
#include "model/load/model_summary.h"
#include "model/load/open_model.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

void add_config(ModelCard& facts, const ModelConfig& config) {
  facts.architecture = config.architecture->name;
  facts.layers = config.layers;
  facts.hidden = config.hidden;
  facts.ffn = config.ffn;
  facts.heads = config.heads;
  facts.kv_heads = config.kv_heads;
  facts.head_dim = config.head_dim;
  facts.vocab_size = config.vocab_size;
  facts.positions_max = config.positions_max;
  facts.experts = config.experts.count;
  facts.chosen_experts = config.experts.chosen;
}

std::string stored_format(const ModelSummary& summary) {
  const auto largest = std::max_element(
      summary.classes.begin(), summary.classes.end(),
      [](const ClassSummary& a, const ClassSummary& b) { return a.count.bytes < b.count.bytes; });
  if (largest == summary.classes.end() || largest->formats.empty()) return "";
  return largest->formats.front();
}

void add_weights(ModelCard& facts, const std::string& model, const ModelConfig& config) {
  const auto opened = open_model(model, PartialFiles::kTables);
  const WeightSource* source = opened.ok() ? opened.value().source.get() : nullptr;
  auto summary = summarise(config, source);
  if (!summary.ok()) summary = summarise(config, source = nullptr);
  if (!summary.ok()) return;
  facts.parameters = summary.value().total.parameters;
  if (source == nullptr) return;
  facts.stored_format = stored_format(summary.value());
  facts.file_bytes = source->file_bytes();
}

// Over facts that tell models apart and do not depend on where they are stored.
std::string card_digest(const fs::path& path, const ModelCard& facts) {
  Hasher hasher(HashKind::kSha256);
  hasher.add(path.filename().string());
  hasher.add(facts.architecture);
  for (const uint64_t number :
       {facts.parameters, static_cast<uint64_t>(facts.layers), static_cast<uint64_t>(facts.hidden),
        static_cast<uint64_t>(facts.vocab_size)}) {
    hasher.add("/" + std::to_string(number));
  }
  const auto config = read_json_file(path / "config.json");
  if (config.ok()) hasher.add(dump_json(config.value()));
  return hasher.finish_hex();
}

int64_t modified_us(const fs::path& path) {
  struct stat facts {};
  const bool is_file = ::stat((path / "config.json").c_str(), &facts) == 0;
  if (!is_file && ::stat(path.c_str(), &facts) != 0) return 0;
  return int64_t{facts.st_mtime} * 1'000'000;
}

}  // namespace

ModelCard read_model_card(const fs::path& path) {
  ModelCard facts;
  facts.format = is_gguf_path(path) ? "gguf" : "safetensors";
  const auto config = read_model_config(path.string());
  if (config.ok()) {
    add_config(facts, config.value());
    add_weights(facts, path.string(), config.value());
  }
  std::error_code error;
  facts.is_embedding = fs::exists(path / "1_Pooling" / "config.json", error);
  facts.digest = card_digest(path, facts);
  facts.modified_us = modified_us(path);
  return facts;
}

}  // namespace lockstep

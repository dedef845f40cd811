// Writes a model of random BF16 weights into a folder: a golden case's config with changes.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "model/load/weight_table.h"
#include "support/golden.h"
#include "weights/quantised/quantise.h"
#include "weights/safetensors/safetensors_writer.h"

namespace lockstep {

// A change to null removes the entry. `folder` is created.
inline void write_random_model(const std::string& config_of, const JsonObject& changes,
                               const std::filesystem::path& folder) {
  Json json = json_of_file(golden_folder(config_of) + "/config.json");
  Json* const inner = json.as_object().if_contains("text_config");
  JsonObject& text = inner != nullptr ? inner->as_object() : json.as_object();
  for (const auto& change : changes) {
    text[change.key()] = change.value();
    if (change.value().is_null()) text.erase(change.key());
  }
  const auto config = parse_config(dump_json(json));
  REQUIRE_MESSAGE(config.ok(), config.error().message);
  const std::vector<Weight> table = weight_table(config.value());
  std::vector<PlannedTensor> tensors;
  for (const Weight& weight : table) {
    PlannedTensor& tensor =
        tensors.emplace_back(PlannedTensor{weight.name, DType::kBF16, {weight.rows}});
    if (!weight.is_vector) tensor.shape.push_back(weight.columns);
  }
  std::filesystem::create_directory(folder);
  REQUIRE(write_new_file(folder / "config.json", dump_json(json)).ok());
  auto writer = SafetensorsWriter::create(folder, tensors);
  REQUIRE(writer.ok());
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.1F);
  for (size_t i = 0; i < table.size(); ++i) {
    std::vector<uint16_t> values(tensors[i].bytes() / sizeof(uint16_t));
    for (uint16_t& value : values) {
      value = bf16_of(normal(random) + (table[i].is_vector ? 1.0F : 0.0F));
    }
    REQUIRE(writer.value().write(i, 0, std::as_bytes(std::span<const uint16_t>(values))).ok());
  }
  REQUIRE(writer.value().finish().ok());
}

}  // namespace lockstep

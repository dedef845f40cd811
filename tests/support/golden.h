// Reads tests/data/golden/<case>/golden.json (see the README there) and the expected files of
// stories260K.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "json/json_file.h"

namespace lockstep {

inline constexpr std::array kPlainGoldenCases{"llama-f32",
                                              "llama3-bf16",
                                              "llama3-bf16-long",
                                              "llama3-bf16-tied",
                                              "llama3-f16-sharded",
                                              "mistral-bf16",
                                              "ministral3-bf16",
                                              "ministral3-bf16-l4scale",
                                              "qwen2-bf16",
                                              "qwen3-bf16-tied",
                                              "qwen3moe-bf16",
                                              "glm4moe-bf16",
                                              "deepseekv3-bf16",
                                              "glm47flash-bf16",
                                              "minimaxm2-bf16",
                                              "gemma4-dense-bf16",
                                              "qwen3next-bf16",
                                              "qwen35-bf16",
                                              "qwen35-f32-tied",
                                              "qwen35moe-bf16",
                                              "kimilinear-bf16",
                                              "gemma4-moe-bf16",
                                              "gemma4-e-bf16",
                                              "deepseekv32-bf16",
                                              "deepseekv32-bf16-dense",
                                              "glmdsa-bf16",
                                              "glmdsa-shared-bf16",
                                              "glm5next-bf16",
                                              "deepseekv4-bf16",
                                              "qwen4exp-bf16"};
inline constexpr std::array kQuantisedGoldenCases{"llama3-q4-g64",         "llama3-q4-g32-f16-tied",
                                                  "llama3-q6-g64",         "llama3-q8-g32",
                                                  "llama3-mxfp4",          "qwen2-q4-g64-tied",
                                                  "qwen3-q4-g64",          "qwen3moe-q4-g64",
                                                  "qwen3moe-q8-g32",       "qwen3moe-mxfp4",
                                                  "ministral3-fp8",        "deepseekv3-fp8",
                                                  "deepseekv3-q4-g32-kvb", "deepseekv3-q4-g64",
                                                  "kimik2-int4-packed",    "kimik2-q8-g32",
                                                  "gptoss-mxfp4",          "kimik25-int4-packed",
                                                  "kimik25-q4-g32",        "glm47flash-q4-g64",
                                                  "minimaxm2-fp8",         "minimaxm2-q4-g64",
                                                  "qwen3next-q4-g64",      "qwen35-q4-g64",
                                                  "qwen35moe-q4-g64",      "kimilinear-q4-g32",
                                                  "gemma4-moe-q4-g64",     "deepseekv32-fp8",
                                                  "deepseekv32-q4-g64",    "glmdsa-q4-g64",
                                                  "glm5next-fp8",          "glm5next-q4-g64",
                                                  "glm5next-q4-absorbed",  "deepseekv4-fp4",
                                                  "deepseekv4-dspark",     "deepseekv4-q4-g64",
                                                  "deepseekv4-mxfp",       "qwen4exp-fp8"};

// With references of the draft layer too.
inline constexpr std::array kDraftGoldenCases{"mtp-deepseekv3-bf16", "mtp-glm4moe-bf16",
                                              "mtp-glmdsa-bf16", "mtp-qwen35-bf16",
                                              "mtp-qwen3next-bf16"};
inline std::vector<std::string> all_golden_cases() {
  std::vector<std::string> cases(kPlainGoldenCases.begin(), kPlainGoldenCases.end());
  cases.insert(cases.end(), kQuantisedGoldenCases.begin(), kQuantisedGoldenCases.end());
  return cases;
}

// And those that have only the logits of it.
inline std::vector<std::string> draft_logits_cases() {
  std::vector<std::string> cases(kDraftGoldenCases.begin(), kDraftGoldenCases.end());
  cases.insert(cases.end(),
               {"glm5next-bf16", "glm5next-q4-absorbed", "deepseekv4-bf16", "deepseekv4-fp4",
                "deepseekv4-dspark", "qwen4exp-bf16", "qwen4exp-fp8"});
  return cases;
}

inline std::string golden_folder(const std::string& name) {
  return std::string(LOCKSTEP_SOURCE_DIR "/tests/data/golden/") + name;
}

struct GoldenRow {
  size_t position;
  std::vector<double> values;
};

// The effect of rounding activations to 8 bits alone, from the float64 program that made the case.
struct SimulatedRounding {
  double rms_difference = 0;
  int top1_agreement = 0;  // in the greedy steps
};

struct Golden {
  std::vector<int32_t> prompt;
  std::vector<GoldenRow> logits;
  std::vector<int32_t> greedy;
  SimulatedRounding int8;
};

inline Json json_of_file(const std::string& path) {
  auto json = read_json_file(path);
  REQUIRE_MESSAGE(json.ok(), json.error().message);
  return std::move(json.value());
}

inline std::vector<int32_t> ints_of(const Json& array) {
  std::vector<int32_t> values;
  for (const Json& item : array.as_array()) {
    values.push_back(static_cast<int32_t>(item.as_int64()));
  }
  return values;
}

inline Golden read_golden(const std::string& folder) {
  const Json file = json_of_file(folder + "/golden.json");
  Golden golden{
      ints_of(*find(file, "prompt")), {}, ints_of(*find(*find(file, "greedy"), "tokens")), {}};
  const Json& simulated = *find(*find(*find(file, "stats"), "simulated"), "int8_block32");
  golden.int8.rms_difference = find(simulated, "rms_diff")->to_number<double>();
  const std::string agreement(find(simulated, "top1_agreement")->as_string());  // "31/32"
  golden.int8.top1_agreement = std::stoi(agreement);
  for (const Json& row : find(file, "logits")->as_array()) {
    GoldenRow& added = golden.logits.emplace_back();
    added.position = static_cast<size_t>(find(row, "position")->as_int64());
    for (const Json& value : find(row, "values")->as_array()) {
      added.values.push_back(value.to_number<double>());
    }
  }
  return golden;
}

}  // namespace lockstep

// Reads tests/data/golden/<case>/golden.json (see the README there) and the expected files of
// stories260K.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "json/json_file.h"

namespace lockstep {

struct GoldenRow {
  size_t position;
  std::vector<double> values;
};

// What rounding activations to 8 bits alone does, from the float64 program that made the case.
struct SimulatedRounding {
  double rms_difference = 0;
  int top1_agreement = 0;  // of the greedy steps
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

// GgufFields: the values "<architecture>.<name>" of a GGUF file, checked. For gguf_config.cc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gguf/gguf_model.h"
#include "json/json.h"

namespace lockstep {

class GgufFields {
 public:
  // The model must outlive the fields.
  GgufFields(const GgufModel& model, std::string_view architecture)
      : file_(model.metadata()), architecture_(architecture) {}

  // From 0 to 2^31 - 1. A list with one value per layer is accepted if all are the same.
  Result<std::optional<int64_t>> integer(std::string_view name) const;
  Result<int64_t> required_integer(std::string_view name) const;
  // (layers): one value for each, or the same for all.
  Result<std::vector<int64_t>> of_layers(std::string_view name, size_t layers) const;
  // A float32 as the decimal that was meant: 0.1, not 0.10000000149.
  Result<std::optional<double>> number(std::string_view name) const;
  // The same of a number, or of a list with one value per layer if all are the same.
  Result<std::optional<double>> number_of_all(std::string_view name) const;
  Result<std::optional<bool>> boolean(std::string_view name) const;
  Result<std::optional<std::string_view>> text(std::string_view name) const;
  // Whether each layer is marked: the value is a list of marks, or a period in which every layer
  // but the last is marked (0: all are). `otherwise` is the default period.
  Result<std::vector<bool>> layer_pattern(std::string_view name, int64_t layers,
                                          int64_t otherwise) const;
  Error missing(std::string_view name) const;
  bool has(std::string_view name) const { return file_.find(key(name)) != nullptr; }

 private:
  std::string key(std::string_view name) const;
  Result<std::optional<double>> as_finite(std::string_view name, std::optional<double> value) const;

  const GgufFile& file_;
  std::string architecture_;
};

// A list of config.json: one of two words for each layer.
JsonArray words_of(const std::vector<bool>& marks, std::string_view marked,
                   std::string_view unmarked);

}  // namespace lockstep

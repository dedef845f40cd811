#include "model/config/gguf_fields.h"

#include <cmath>
#include <limits>
#include <variant>

#include "json/json.h"
#include "model/config/config_fields.h"

namespace lockstep {
namespace {

constexpr int64_t kIntegerMax = std::numeric_limits<int32_t>::max();

bool is_array(const GgufFile& file, std::string_view key) {
  const GgufValue* value = file.find(key);
  return value != nullptr && std::holds_alternative<GgufArray>(*value);
}

// The value that all layers have; nullopt for none.
template <class Number>
Result<std::optional<Number>> one_of_all(const std::vector<Number>& values,
                                         const std::string& key) {
  for (const Number value : values) {
    if (value == values.front()) continue;
    return unsupported(
        fmt::format("the GGUF value {} differs between layers, which is not supported", key));
  }
  return values.empty() ? std::nullopt : std::optional(values.front());
}

double as_written(double value) {
  if (!(std::abs(value) <= std::numeric_limits<float>::max())) return value;
  const auto narrow = static_cast<float>(value);
  if (narrow != value) return value;
  std::string text = "{\"v\":";
  append_json_float(text, narrow);
  const auto json = parse_json(text + "}");
  if (!json.ok()) return value;
  const auto number = get_double(json.value(), "v");
  return number.ok() ? number.value().value_or(value) : value;
}

}  // namespace

std::string GgufFields::key(std::string_view name) const {
  return architecture_ + "." + std::string(name);
}

Error GgufFields::missing(std::string_view name) const {
  return corrupt(fmt::format("the GGUF value {} is missing", key(name)));
}

Result<std::optional<int64_t>> GgufFields::integer(std::string_view name) const {
  std::optional<int64_t> value;
  if (is_array(file_, key(name))) {
    value = TRY(one_of_all(TRY(file_.integers(key(name))), key(name)));
  } else {
    value = TRY(file_.integer(key(name)));
  }
  if (value && (*value < 0 || *value > kIntegerMax)) {
    return corrupt(fmt::format("the GGUF value {} is {}, which is invalid", key(name), *value));
  }
  return value;
}

Result<int64_t> GgufFields::required_integer(std::string_view name) const {
  const auto value = TRY(integer(name));
  if (!value) return missing(name);
  return *value;
}

Result<std::optional<double>> GgufFields::number(std::string_view name) const {
  return as_finite(name, TRY(file_.number(key(name))));
}

Result<std::optional<double>> GgufFields::number_of_all(std::string_view name) const {
  if (!is_array(file_, key(name))) return number(name);
  return as_finite(name, TRY(one_of_all(TRY(file_.numbers(key(name))), key(name))));
}

Result<std::optional<double>> GgufFields::as_finite(std::string_view name,
                                                    std::optional<double> value) const {
  if (value) value = as_written(*value);
  if (!value || std::isfinite(*value)) return value;
  return corrupt(fmt::format("the GGUF value {} is not a finite number", key(name)));
}

Result<std::optional<bool>> GgufFields::boolean(std::string_view name) const {
  return file_.boolean(key(name));
}

Result<std::optional<std::string_view>> GgufFields::text(std::string_view name) const {
  return file_.string(key(name));
}

Result<std::vector<int64_t>> GgufFields::of_layers(std::string_view name, size_t layers) const {
  if (!is_array(file_, key(name))) {
    return std::vector<int64_t>(layers, TRY(required_integer(name)));
  }
  std::vector<int64_t> values = TRY(file_.integers(key(name)));
  if (values.size() < layers) {
    return corrupt(fmt::format("the GGUF value {} has {} entries for {} layers", key(name),
                               values.size(), layers));
  }
  values.resize(layers);
  for (const int64_t value : values) {
    if (value >= 0 && value <= kIntegerMax) continue;
    return corrupt(fmt::format("the GGUF value {} is {}, which is invalid", key(name), value));
  }
  return values;
}

Result<std::vector<bool>> GgufFields::layer_pattern(std::string_view name, int64_t layers,
                                                    int64_t otherwise) const {
  std::vector<bool> marks;
  if (!is_array(file_, key(name))) {
    const int64_t period = TRY(integer(name)).value_or(otherwise);
    for (int64_t i = 0; i < layers; ++i) marks.push_back(period == 0 || i % period < period - 1);
    return marks;
  }
  // Booleans are one byte each.
  if (const auto bytes = file_.bytes(key(name)); bytes.ok()) {
    for (const char mark : bytes.value()) marks.push_back(mark != 0);
  } else {
    for (const int64_t mark : TRY(file_.integers(key(name)))) marks.push_back(mark != 0);
  }
  if (marks.size() < static_cast<size_t>(layers)) {
    return corrupt(fmt::format("the GGUF value {} has {} entries for {} layers", key(name),
                               marks.size(), layers));
  }
  marks.resize(static_cast<size_t>(layers));
  return marks;
}

JsonArray words_of(const std::vector<bool>& marks, std::string_view marked,
                   std::string_view unmarked) {
  JsonArray words;
  for (const bool is_marked : marks) words.emplace_back(is_marked ? marked : unmarked);
  return words;
}

}  // namespace lockstep

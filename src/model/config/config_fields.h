// Numbers of config.json with the errors of a broken file. Used by the readers of ModelConfig.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace lockstep {

// Larger values mean a broken file; published models have up to 126 layers and 512 experts.
inline constexpr int64_t kSizeMax = 1 << 24;  // for any dimension
inline constexpr int64_t kLayersMax = 1024;
inline constexpr int64_t kLayerExpertsMax = 2048;
inline constexpr int64_t kHeadDimMax = 512;  // of heads with keys of their own

inline Error corrupt(std::string message) {
  return {ErrorCode::kCorrupt, std::move(message)};
}
inline Error unsupported(std::string message) {
  return {ErrorCode::kUnsupported, std::move(message)};
}

// From 1 to `most`. A missing value is an error if there is no `otherwise`.
Result<int> size_or(const Json& object, std::string_view key, std::optional<int64_t> otherwise,
                    int64_t most = kSizeMax);
Result<double> positive(const Json& object, std::string_view key, std::optional<double> otherwise);

// A list in config.json that names the type of each layer, one of two.
struct LayerTypes {
  std::string_view key;
  std::string_view subject;  // of errors: the layer, or a part of it
  std::string_view usual;
  std::string_view other;
};
// Whether each of `layers` layers has the other type; empty if the file lacks the list.
Result<std::vector<bool>> read_layer_types(const Json& file, const LayerTypes& types,
                                           size_t layers);

}  // namespace lockstep

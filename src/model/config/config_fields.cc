#include "model/config/config_fields.h"

#include <cmath>

namespace lockstep {

Result<int> size_or(const Json& object, std::string_view key, std::optional<int64_t> otherwise,
                    int64_t most) {
  const auto value = TRY(get_int(object, key));
  if (!value && !otherwise) return corrupt(fmt::format("\"{}\" is missing", key));
  const int64_t size = value ? *value : *otherwise;
  if (size < 1 || size > most) {
    return corrupt(fmt::format("\"{}\" is {}, it must be from 1 to {}", key, size, most));
  }
  return static_cast<int>(size);
}

Result<double> positive(const Json& object, std::string_view key, std::optional<double> otherwise) {
  const auto value = TRY(get_double(object, key));
  if (!value && !otherwise) return corrupt(fmt::format("\"{}\" is missing", key));
  const double number = value ? *value : *otherwise;
  if (!(number > 0) || !std::isfinite(number)) {
    return corrupt(fmt::format("\"{}\" is {}, it must be a positive number", key, number));
  }
  return number;
}

Result<std::vector<bool>> read_layer_types(const Json& file, const LayerTypes& types,
                                           size_t layers) {
  std::vector<bool> are_other;
  const Json* list = find(file, types.key);
  if (!list || list->is_null()) return are_other;
  if (!list->is_array() || list->get_array().size() != layers) {
    return corrupt(fmt::format("\"{}\" must name each layer's type", types.key));
  }
  for (const Json& type : list->get_array()) {
    const auto is = [&](std::string_view name) {
      return type.is_string() && type.get_string() == name;
    };
    if (!is(types.usual) && !is(types.other)) {
      return unsupported(fmt::format("the {} type {} is unknown here; known are {} and {}",
                                     types.subject, dump_json(type), types.usual, types.other));
    }
    are_other.push_back(is(types.other));
  }
  return are_other;
}

}  // namespace lockstep

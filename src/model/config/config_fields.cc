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

}  // namespace lockstep

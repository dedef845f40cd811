#include "cli/client/wanted_model.h"

#include <fmt/core.h>

#include <filesystem>

#include "node/models/model_name.h"

namespace lockstep {

Result<WantedModel> wanted_model(const std::string& model) {
  std::error_code error;
  if (std::filesystem::exists(model, error)) {
    const auto whole = std::filesystem::absolute(model, error).lexically_normal();
    if (error) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("the path of {} is not known: {}", model, error.message())};
    }
    return WantedModel{model_name_of(whole.string()), whole.string()};
  }
  if (is_published_model(model)) return WantedModel{model_name_of(model), model};
  return Error{
      ErrorCode::kNotFound,
      fmt::format("there is no folder or file {}, and it is not a hub model (org/name)", model)};
}

}  // namespace lockstep

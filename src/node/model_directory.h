// ModelDirectory: the models that the API offers at this moment, by the names that clients use. A
// node's models come and go with the cluster; a single machine's are fixed. Any thread.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/model_service.h"

namespace lockstep {

class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  // For listings, in their order.
  virtual std::vector<std::shared_ptr<ModelService>> models() const = 0;
  // Which model a request means; an empty name means the only one. It counts as a use, which loads
  // what is loaded on demand. kNotFound with a sentence that names what looks like it.
  virtual Result<std::shared_ptr<ModelService>> find(std::string_view name) = 0;
};

// By its exact name, else regardless of case, else by the last component of a path if that is
// unambiguous.
class FixedModels final : public ModelDirectory {
 public:
  explicit FixedModels(std::vector<std::shared_ptr<ModelService>> models)
      : models_(std::move(models)) {}
  std::vector<std::shared_ptr<ModelService>> models() const override { return models_; }
  Result<std::shared_ptr<ModelService>> find(std::string_view name) override;

 private:
  const std::vector<std::shared_ptr<ModelService>> models_;
};

}  // namespace lockstep

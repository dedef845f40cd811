// ModelDirectory: the models that the API offers at this moment, by the names that clients use. A
// node's models come and go with the cluster; a single machine's are fixed. Any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/model_service.h"

namespace lockstep {

using ModelServices = std::vector<std::shared_ptr<ModelService>>;

class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  // For listings, in their order.
  virtual ModelServices models() const = 0;
  // Which model a request means; an empty name means the only one. It counts as a use, which loads
  // what is loaded on demand. kInvalidArgument where an empty name is not enough; kNotFound with a
  // sentence that names what looks like it.
  virtual Result<std::shared_ptr<ModelService>> find(std::string_view name) = 0;
  // Whether the model of exactly this name is loaded on demand: it goes when it is not used.
  virtual bool is_on_demand(std::string_view) const { return false; }
  // Of such a model: it stays so long from the end of this node's requests on, instead of what was
  // promised, unless there is another request. Negative: for ever, likewise.
  virtual void keep(std::string_view, std::chrono::milliseconds) {}
};

class FixedModels final : public ModelDirectory {
 public:
  explicit FixedModels(ModelServices models) : models_(std::move(models)) {}
  ModelServices models() const override { return models_; }
  Result<std::shared_ptr<ModelService>> find(std::string_view name) override;

 private:
  const ModelServices models_;
};

// Two directories as one: what this machine serves by itself, and what the cluster serves. Of two
// models with one name the first directory's is meant.
class JoinedModels final : public ModelDirectory {
 public:
  JoinedModels(std::shared_ptr<ModelDirectory> first, std::shared_ptr<ModelDirectory> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  ModelServices models() const override;
  Result<std::shared_ptr<ModelService>> find(std::string_view name) override;
  bool is_on_demand(std::string_view name) const override;
  void keep(std::string_view name, std::chrono::milliseconds time) override;

 private:
  ModelDirectory& directory_of(std::string_view name) const;

  const std::shared_ptr<ModelDirectory> first_;
  const std::shared_ptr<ModelDirectory> second_;
};

// By its exact name, else regardless of case, else by the last component of a path if that is
// unambiguous; null if none is meant. It counts as no use.
std::shared_ptr<ModelService> model_named(const ModelServices& models, std::string_view name);

// The errors of ModelDirectory::find().
Error no_name_given(const ModelServices& models);
Error no_model_named(std::string_view name, const ModelServices& models);

}  // namespace lockstep

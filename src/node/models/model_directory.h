// ModelDirectory: the models that the API offers now, by the names that clients use. A node's
// models come and go with the cluster; a single machine's are fixed. Any thread.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/models/model_service.h"

namespace lockstep {

using ModelServices = std::vector<std::shared_ptr<ModelService>>;

class ModelDirectory {
 public:
  virtual ~ModelDirectory() = default;
  // For listings, in their order.
  virtual ModelServices models() const = 0;
  // The model that a request names; an empty name means the only one. Counts as a use, which loads
  // a model that is loaded on demand. kInvalidArgument if an empty name is ambiguous; kNotFound
  // with a sentence that suggests similar names.
  virtual Result<std::shared_ptr<ModelService>> find(std::string_view name) = 0;
  // Waits, at most for `patience`, while the small files of the model meant are being fetched:
  // until then find() fails. Not for an event loop's thread.
  virtual void await_files(std::string_view, std::chrono::milliseconds) const {}
  // Whether the model of exactly this name is loaded on demand: it is unloaded when unused.
  virtual bool is_on_demand(std::string_view) const { return false; }
  // For such a model: how long it stays after this node's requests end, instead of the promised
  // time, until the next request. Negative: for ever, likewise.
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

// Two directories as one: this machine's own models, and the cluster's. If two models have one
// name, the first directory's is used.
class JoinedModels final : public ModelDirectory {
 public:
  JoinedModels(std::shared_ptr<ModelDirectory> first, std::shared_ptr<ModelDirectory> second)
      : first_(std::move(first)), second_(std::move(second)) {}
  ModelServices models() const override;
  Result<std::shared_ptr<ModelService>> find(std::string_view name) override;
  void await_files(std::string_view name, std::chrono::milliseconds patience) const override;
  bool is_on_demand(std::string_view name) const override;
  void keep(std::string_view name, std::chrono::milliseconds time) override;

 private:
  ModelDirectory& directory_of(std::string_view name) const;

  const std::shared_ptr<ModelDirectory> first_;
  const std::shared_ptr<ModelDirectory> second_;
};

// By its exact name, else case-insensitively, else by the last component of a path if that is
// unambiguous; null if there is none. Does not count as a use.
std::shared_ptr<ModelService> model_named(const ModelServices& models, std::string_view name);

// The errors of ModelDirectory::find().
Error no_name_given(const ModelServices& models);
Error no_model_named(std::string_view name, const ModelServices& models);

}  // namespace lockstep

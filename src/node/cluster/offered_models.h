// OfferedModels: the cluster's desired models as this node's API offers them, each with its service
// once its small files have been read. ClusterModels publishes on its loop's thread; any thread may
// call the rest.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cluster/state/desired_state.h"
#include "node/models/model_service.h"

namespace lockstep {

class OfferedModels {
 public:
  struct Offer {
    std::shared_ptr<ModelService> model;  // null until its small files have been read
    std::string problem;                  // why they have not been
  };
  using Offers = std::map<std::string, Offer, std::less<>>;  // by the model's own name

  void publish(DesiredState desired, Offers offers);

  std::vector<std::shared_ptr<ModelService>> models() const;
  // The own name of the model meant; an empty name means the only one. kNotFound.
  Result<std::string> name_of(std::string_view name) const;
  // By the own name of a model. kPeerLost: its files are not on this node yet; kNotFound.
  Result<std::shared_ptr<ModelService>> service_of(const std::string& name) const;
  // Waits while the files of the model meant are being fetched and read: until they have been, a
  // problem is known, the thread's work is cancelled (base/threads/work.h), or `patience` is over.
  void await_files(std::string_view name, std::chrono::milliseconds patience) const;
  bool is_on_demand(std::string_view name) const;
  // Why the files of the model of this path are not on this node; empty: they are being fetched.
  std::string problem_of(const std::string& path) const;

 private:
  // Null: there is no such model. With the mutex held.
  const Offers::value_type* find(std::string_view name) const;

  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  DesiredState desired_;
  Offers offers_;
};

}  // namespace lockstep

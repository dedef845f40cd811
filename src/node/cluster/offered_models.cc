#include "node/cluster/offered_models.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/threads/work.h"
#include "cluster/state/model_names.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// How soon a waiting thread sees that its work is cancelled.
constexpr milliseconds kWorkLook{100};

}  // namespace

void OfferedModels::publish(DesiredState desired, Offers offers) {
  {
    const std::lock_guard lock(mutex_);
    desired_ = std::move(desired);
    offers_ = std::move(offers);
  }
  changed_.notify_all();
}

std::vector<std::shared_ptr<ModelService>> OfferedModels::models() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ModelService>> models;
  for (const auto& [name, offer] : offers_) {
    if (offer.model) models.push_back(offer.model);
  }
  return models;
}

const OfferedModels::Offers::value_type* OfferedModels::find(std::string_view name) const {
  const bool is_only = name.empty() && offers_.size() == 1;
  const ModelName found = find_model(desired_, is_only ? offers_.begin()->first : name);
  const auto offer = found.entry ? offers_.find(found.entry->name) : offers_.end();
  return offer == offers_.end() ? nullptr : &*offer;
}

Result<std::string> OfferedModels::name_of(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto* const offer = find(name);
  if (offer != nullptr) return offer->first;
  return Error{ErrorCode::kNotFound, no_such_model(name, find_model(desired_, name))};
}

Result<std::shared_ptr<ModelService>> OfferedModels::service_of(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = offers_.find(name);
  if (found == offers_.end()) {
    return Error{ErrorCode::kNotFound, no_such_model(name, find_model(desired_, name))};
  }
  const Offer& offer = found->second;
  if (offer.model) return offer.model;
  return Error{ErrorCode::kPeerLost,
               fmt::format("the files of the model '{}' are not on this node yet{}{}", name,
                           offer.problem.empty() ? "" : ": ", offer.problem)};
}

void OfferedModels::await_files(std::string_view name, milliseconds patience) const {
  const auto deadline = Clock::now() + patience;
  std::unique_lock lock(mutex_);
  while (!Work::is_over() && Clock::now() < deadline) {
    const auto* const offer = find(name);
    if (offer == nullptr || offer->second.model || !offer->second.problem.empty()) return;
    changed_.wait_until(lock, std::min(deadline, Clock::now() + kWorkLook));
  }
}

bool OfferedModels::is_on_demand(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const DesiredEntry* entry = desired_.find(name);
  return entry != nullptr && entry->wanted && entry->promises.idle_unload_s > 0;
}

std::string OfferedModels::problem_of(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, offer] : offers_) {
    const DesiredEntry* entry = desired_.find(name);
    if (entry && entry->reads(path) && !offer.problem.empty()) return offer.problem;
  }
  return "";
}

}  // namespace lockstep

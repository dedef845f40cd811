// Machines and links for a plan of a cluster as it would be with machines added or nodes removed,
// for POST /cluster/plan. Nothing is loaded or changed. Pure, except for OwnOffer.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cluster/brain/plan_function.h"
#include "node/cluster/cluster_control.h"
#include "planner/facts/cluster_facts.h"

namespace lockstep {

struct AddedMachine {
  std::string profile;  // of planner/profiles/profiles.h
  std::string link;     // to all other machines; may be empty if there are none
  std::string name;     // empty: the profile's
};

// The nodes that are alive, as places for this model: what it holds there already counts as free.
std::vector<NodeOffer> offers_for(const ClusterReport& report, std::string_view model);

// kNotFound and kInvalidArgument name what is unknown, missing or too much.
Result<ClusterFacts> what_if(std::span<const NodeOffer> nodes, std::span<const AddedMachine> added);

// This machine without a cluster, where models compute on its processor or on the device of `known`
// (its free memory and speed). A processor's speed is measured once, which takes a fraction of a
// second. Any thread.
class OwnOffer {
 public:
  explicit OwnOffer(std::optional<NodeOffer> known = std::nullopt) : known_(std::move(known)) {}
  // kUnsupported if the system does not say how much memory is free.
  Result<NodeOffer> get(const std::string& name);

 private:
  const std::optional<NodeOffer> known_;
  std::mutex mutex_;  // guards what follows
  std::optional<NodeOffer> measured_;
};

}  // namespace lockstep

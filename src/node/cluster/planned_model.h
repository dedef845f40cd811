// PlannedModel: what a plan must know of a model and of what guesses its tokens, read from their
// files. For a cluster's own plans, POST /cluster/plan and `lockstep plan`.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "planner/facts/model_facts.h"
#include "weights/weight_source.h"

namespace lockstep {

struct PlannedModel {
  ModelFacts facts;  // with the draft layer that is used, if any
  // Another model that guesses.
  std::optional<ModelFacts> draft_model{};
  std::string draft_name{};  // its path, or a shape's name

  const ModelFacts* draft_facts() const { return draft_model ? &*draft_model : nullptr; }
  // kInvalidArgument or kUnsupported, with the reason, if the model that guesses cannot do so in a
  // context of so many positions.
  Status check_context(int context) const;
};

// How a group is to run a model, as far as its memory depends on it.
struct PlannedSources {
  // Arguments of open_model(); the draft model may be a draft layer in files of its own, or empty.
  std::string model;
  std::string draft_model{};
  bool ngrams_on_disk = false;

  auto operator<=>(const PlannedSources&) const = default;
};

// Refuses what an engine would refuse. Reads the tables of the weights, and with a draft model both
// tokenizers.
Result<PlannedModel> read_planned_model(const PlannedSources& sources, PartialFiles partial);

}  // namespace lockstep

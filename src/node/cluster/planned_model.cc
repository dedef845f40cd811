#include "node/cluster/planned_model.h"

#include <filesystem>
#include <utility>

#include "engine/run/draft_model.h"
#include "model/load/open_model.h"
#include "model/load/shape_model.h"

namespace lockstep {
namespace {

// Shapes have no tokenizers, and are best called by their names.
std::string shown_name(const std::string& model) {
  if (!is_shape_model(model)) return model;
  const auto shape = parse_shape_model(model);
  return shape.ok() ? shape.value().shape : model;
}

}  // namespace

Status PlannedModel::check_context(int context) const {
  if (!draft_model) return Ok{};
  const std::filesystem::path name = draft_name;
  return check_draft_model({name, draft_model->config}, context);
}

Result<PlannedModel> read_planned_model(const PlannedSources& sources, PartialFiles partial) {
  const std::string& draft_model = sources.draft_model;
  OpenedModel opened = TRY(open_for_drafts(sources.model, true, draft_model, partial));
  if (sources.ngrams_on_disk) TRY(leave_ngrams_on_disk(opened.config));
  PlannedModel planned{.facts = TRY(model_facts(opened))};
  if (draft_model.empty() || opened.prefers_draft_files) return planned;
  const OpenedModel draft = TRY(open_model(draft_model, partial));
  planned.draft_name = shown_name(draft_model);
  const std::filesystem::path own = shown_name(sources.model), other = planned.draft_name;
  TRY(check_draft_tokens({own, opened.config}, {other, draft.config}));
  planned.draft_model = TRY(model_facts(draft));
  return planned;
}

}  // namespace lockstep

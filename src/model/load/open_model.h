// Opens a model from any source: a checkpoint folder, a .gguf file, or a shape with random weights
// (shape_model.h). Used by ranks, `show` and `bench`.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/config/config.h"
#include "weights/weight_source.h"

namespace lockstep {

struct OpenedModel {
  ModelConfig config;
  std::shared_ptr<const WeightSource> source;
  std::string draft_problem{};  // why its draft layer cannot be used
  // A checkpoint's folder, and the draft layer in files of its own that it has.
  std::filesystem::path folder{};
  std::filesystem::path draft_files{};  // empty: none
  bool prefers_draft_files = false;     // to a draft layer among the model's files
  PartialFiles partial = PartialFiles::kRefused;
};

Result<OpenedModel> open_model(const std::string& model,
                               PartialFiles partial = PartialFiles::kRefused);
// Lets the model use its draft layer, if its files have one that can be used: in the quantised form
// of the layer the ranks' parts must begin where those of the other layers begin, so that the
// model's bits stay as they are. With several `stages` the last one has the layer.
// ModelConfig::has_draft_layer() and `draft_problem` tell. A layer in files of its own
// (weights/source/draft_source.h) is used if the model's files have none.
void use_draft_layer(OpenedModel& model, int stages = 1);
// Both; a shape with a draft layer has random weights for it then.
Result<OpenedModel> open_with_draft_layer(const std::string& model,
                                          PartialFiles partial = PartialFiles::kRefused,
                                          int stages = 1);
// The model as its guesses need it. `draft_model`: empty, or another model, for which a draft layer
// would be left out, or the draft layer in files of its own (is_draft_layer()), which is used
// instead of one among the model's files: prefers_draft_files. kInvalidArgument, with the reason,
// if that cannot be used. `draft_layer`: whether its own may guess.
Result<OpenedModel> open_for_drafts(const std::string& model, bool draft_layer,
                                    const std::filesystem::path& draft_model,
                                    PartialFiles partial = PartialFiles::kRefused, int stages = 1);
// The table of n-grams is to stay in the model's files (model/ngrams/ngram_files.h).
// kInvalidArgument if the model has none.
Status leave_ngrams_on_disk(ModelConfig& config);
// Only the config, without opening the weights.
Result<ModelConfig> read_model_config(const std::string& model);

}  // namespace lockstep

// A running model's time for a prompt and for a token: the output of `lockstep bench` for models
// and for shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/flags/group_flags.h"
#include "json/json.h"
#include "node/models/model_service.h"

namespace lockstep {

struct ModelBenchFlags {
  GroupFlags group;
  int prompt_tokens = 512;
  int new_tokens = 128;
  int repetitions = 3;
  int streams = 1;  // decoding at once
};

struct ModelTimes {
  double prompt_s = 0;
  double token_s = 0;  // all streams together
  // The machine's energy in that time; 0 without a meter (base/machine/power_meter.h).
  double prompt_j = 0;
  double token_j = 0;
};

// The middle one, or the mean of the two in the middle. `values` is not empty.
double median(std::vector<double> values);
// The group to be measured: all streams run together.
Result<GroupSupervisorOptions> bench_options(const ModelBenchFlags& flags);
// Warns on stderr if the context is too short for the request.
void limit_lengths(ModelBenchFlags& flags, int context);
// The medians for each model. Each round measures all of them in turn, so that drift of the machine
// favours none.
Result<std::vector<ModelTimes>> measure_in_turn(const std::vector<ModelService*>& models,
                                                const ModelBenchFlags& flags);
// How many steps the guesses of a draft layer or a draft model save, as counted by rank 0 for an
// answer of flags.new_tokens after its first token.
struct GuessFigures {
  double right = 0;                // the share of all guesses
  double tokens_per_step = 0;      // of one stream
  double exchanges_per_token = 0;  // between the ranks of a stage; 0: each has one rank
};
// Nothing if none was made. Waits some seconds for the counts.
Result<std::optional<GuessFigures>> count_guesses(ModelService& model,
                                                  const ModelBenchFlags& flags);

// The best read speed of the threads that the model uses.
Result<double> read_speed_gb_s(const GroupSupervisorOptions& options);

struct ModelSpeed {
  std::string name;
  ModelTimes times;
  double read_gb_s = 0;
  uint64_t bytes_per_token = 0;  // checkpoint bytes of the weights that a token reads
  std::optional<GuessFigures> guesses{};
};

// The keys common to all benchmarks of a model.
JsonObject bench_json(const ModelBenchFlags& flags, const GroupSupervisorOptions& options,
                      const ModelSpeed& speed);
void print_model_bench(const Json& result);

}  // namespace lockstep

// How long a running model takes for a prompt and for a token: what `lockstep bench` prints for
// models and for shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/group_flags.h"
#include "json/json.h"
#include "node/model_service.h"

namespace lockstep {

struct ModelBenchFlags {
  GroupFlags group;
  int prompt_tokens = 512;
  int new_tokens = 128;
  int repetitions = 3;
  int streams = 1;  // that decode at once
};

struct ModelTimes {
  double prompt_s = 0;
  double token_s = 0;  // of all streams together
  // The energy that the machine took meanwhile; 0 where it has no meter (base/power_meter.h).
  double prompt_j = 0;
  double token_j = 0;
};

// The middle one, or the mean of the two in the middle. There is one value at least.
double median(std::vector<double> values);
// The group that is measured: all streams run together.
Result<LocalGroupOptions> bench_options(const ModelBenchFlags& flags);
// Says on stderr if the context is too short for what was asked.
void limit_lengths(ModelBenchFlags& flags, int context);
// The medians for each model. Rounds go over all of them in turn, so that a machine that drifts
// does not favour one.
Result<std::vector<ModelTimes>> measure_in_turn(const std::vector<ModelService*>& models,
                                                const ModelBenchFlags& flags);
// The best read of the threads that the model uses.
Result<double> read_speed_gb_s(const LocalGroupOptions& options);
int threads_of(const LocalGroupOptions& options);

struct ModelSpeed {
  std::string name;
  ModelTimes times;
  double read_gb_s = 0;
  uint64_t bytes_per_token = 0;  // checkpoint bytes of the weights that a token reads
};

// The keys that every benchmark of a model has.
JsonObject bench_json(const ModelBenchFlags& flags, const LocalGroupOptions& options,
                      const ModelSpeed& speed);
void print_model_bench(const Json& result);

}  // namespace lockstep

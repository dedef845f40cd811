// `lockstep bench --shape`: the speed of a model without its files, from random weights of its
// shape; of all layers, or of some, from which the whole is extrapolated.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/bench/model_bench.h"
#include "cli/flags/group_flags.h"
#include "json/json.h"

namespace lockstep {

struct ShapeFlags {
  std::string shape;
  int bits = 0;        // 16, 32, or MLX's; 0: see `format`
  std::string format;  // empty: by `bits`, or bf16 without them
  int layers = 0;      // to be measured; 0: all
};

// The format of random weights by `--format` or `--bits`.
Result<std::string> format_of(const ShapeFlags& flags);

// The text that opens the model of random weights (model/load/shape_model.h).
Result<std::string> shape_text(const ShapeFlags& flags);

// The model of benchmarks that take one as it is, with as many layers as requested.
struct ModelOrShapeFlags {
  GroupFlags group;
  ShapeFlags shape;  // in place of group.model
};

// The context must hold `positions`; without --context it has a few more.
Result<GroupSupervisorOptions> model_or_shape_options(ModelOrShapeFlags flags, int positions);

// The whole model to extrapolate to: layers, in units of the measured ones, and bytes per token.
struct WholeModel {
  double layers = 0;
  double layer_bytes = 0;   // read per token in a measured layer
  double shared_bytes = 0;  // and outside the layers: the LM head, the norm
};

// A model of `layers` layers takes `seconds`; one of `fewer_layers` (0: not measured) takes
// `fewer_seconds`. Time is modelled as a part per layer plus a rest. If they cannot be separated
// (one measurement, or noise), the bytes that a token reads divide the time.
struct LayerTimes {
  int layers = 0;
  double seconds = 0;
  int fewer_layers = 0;
  double fewer_seconds = 0;
};
double extrapolated_seconds(const LayerTimes& times, const WholeModel& whole);

// kExhausted if the machine's memory is too small.
Result<Json> bench_shape(const ShapeFlags& shape, ModelBenchFlags flags);

}  // namespace lockstep

// `lockstep bench --shape`: the speed of a model that is not there, from random weights of its
// shape; of all layers, or of some, from which the whole is extrapolated.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/group_flags.h"
#include "cli/model_bench.h"
#include "json/json.h"

namespace lockstep {

struct ShapeFlags {
  std::string shape;
  int bits = 0;        // 16, 32, or those of MLX; 0: see `format`
  std::string format;  // empty: by `bits`, and bf16 without them
  int layers = 0;      // that are measured; 0: all
};

// The format of random weights that `--format` or `--bits` ask for.
Result<std::string> format_of(const ShapeFlags& flags);

// What benchmarks run that take a model as it is, with as many layers as asked for.
struct ModelOrShapeFlags {
  GroupFlags group;
  ShapeFlags shape;  // in place of group.model
};

// `positions` are needed in the context, which has a few more if --context does not say.
Result<LocalGroupOptions> model_or_shape_options(ModelOrShapeFlags flags, int positions);

// What is extrapolated to: layers, in units of the measured ones, and what a token reads.
struct WholeModel {
  double layers = 0;
  double layer_bytes = 0;   // that a token reads of a measured layer
  double shared_bytes = 0;  // and of what is no layer: the LM head, the norm
};

// A model of `layers` layers takes `seconds`; one of `fewer_layers` (0: not measured) takes
// `fewer_seconds`. Time is taken to be a part for each layer and a part for the rest. Where they
// cannot be told apart (one measurement, or noise), the bytes that a token reads divide the time.
struct LayerTimes {
  int layers = 0;
  double seconds = 0;
  int fewer_layers = 0;
  double fewer_seconds = 0;
};
double extrapolated_seconds(const LayerTimes& times, const WholeModel& whole);

// kExhausted where the machine's memory does not suffice.
Result<Json> bench_shape(const ShapeFlags& shape, ModelBenchFlags flags);

}  // namespace lockstep

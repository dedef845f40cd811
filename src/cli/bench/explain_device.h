// `lockstep bench --explain-device`: what one token costs on a GPU, from the plan alone.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/bench/shape_bench.h"
#include "json/json.h"

namespace lockstep {

struct ExplainFlags {
  std::string model;  // or shape
  ShapeFlags shape;
  int position = 0;  // of the token
};

// {"model", "position", "layers": [{"first", "count", "dispatches", "barriers", "bytes",
// "kernels"}], "dispatches", "barriers", "bytes", "needed_bytes"}: `count` layers are like the
// first.
Result<Json> explain_device(const ExplainFlags& flags);
void print_explanation(const Json& explanation);

}  // namespace lockstep

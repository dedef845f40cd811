// `lockstep bench parallel`: one rank against tensor-parallel and pipeline ranks on this machine,
// with links slowed as requested, next to the predictions of model/load/speed_model.h. Shows what a
// network would do to a model before there is one.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/bench/model_bench.h"
#include "cli/bench/shape_bench.h"
#include "json/json.h"

namespace lockstep {

struct ParallelFlags {
  ShapeFlags shape;
  std::string link = "shm";
  std::string delays_us = "0,3,50,300,1000,3000";
  int ranks = 2;
  int threads = 1;  // of each rank
  int prompt_tokens = 512;
  int new_tokens = 32;
  int repetitions = 3;
};

Result<Json> bench_parallel(const ParallelFlags& flags);
void print_parallel_bench(const Json& result);

}  // namespace lockstep

// `lockstep bench serve`: latencies of a server under load: times to the first token, between
// tokens and of whole answers, of any server that speaks OpenAI's API or of a node that is started
// for it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/bench/load_run.h"
#include "cli/flags/group_flags.h"
#include "json/json.h"

namespace lockstep {

struct BenchServeFlags {
  std::string url;    // empty: a node of `group` is started
  GroupFlags group;   // with its model
  std::string model;  // sent in requests; empty: the first model that the server lists
  std::string api = "completions";
  std::string api_key;
  double temperature = 0;
  std::string prompt_tokens = "128";
  std::string new_tokens = "64";
  double timeout_s = 600;
  LoadOptions load;
};

// kPeerLost if no server answers, kNotFound if it lists no model. Failures of single requests are
// part of the result.
Result<Json> bench_serve(BenchServeFlags flags);

// The result of flags and figures; its keys are a contract (docs/command-line.md).
JsonObject bench_serve_json(const LoadTarget& target, const LoadOptions& options,
                            const LoadFigures& figures);
void print_bench_serve(const Json& result);

}  // namespace lockstep

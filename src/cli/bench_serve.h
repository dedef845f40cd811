// `lockstep bench serve`: what users of a server feel under a load: times to the first token,
// between tokens and of whole answers, of any server that speaks OpenAI's API or of a node that is
// started for it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/group_flags.h"
#include "cli/load_run.h"
#include "json/json.h"

namespace lockstep {

struct BenchServeFlags {
  std::string url;    // empty: a node of `group` is started
  GroupFlags group;   // with its model
  std::string model;  // the name that requests carry; empty: the first one that the server lists
  std::string api = "completions";
  std::string api_key;
  double temperature = 0;
  std::string prompt_tokens = "128";
  std::string new_tokens = "64";
  double timeout_s = 600;
  LoadOptions load;
};

// kPeerLost where no server answers, kNotFound where it lists no model. What happens to single
// requests is part of the result.
Result<Json> bench_serve(BenchServeFlags flags);

// What the flags and figures become; its keys are a contract (docs/command-line.md).
JsonObject bench_serve_json(const LoadTarget& target, const LoadOptions& options,
                            const LoadFigures& figures);
void print_bench_serve(const Json& result);

}  // namespace lockstep

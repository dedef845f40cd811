// Compares the planner's time per token with published decode speeds of real clusters, for
// `lockstep plan --check FILE`. The file contains the machine's bandwidth, the models' shapes and
// the measurements (tests/data/cluster); the constants are the shipped profile's, or fitted to the
// file. The measured software keeps the LM head, the projections to the latents and the router
// whole on every machine; the result of lockstep's own cut is also reported.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planner/profiles/profiles.h"

namespace lockstep {

// Assumptions for our own software on those machines: goals, not measurements.
inline constexpr double kOwnExchangeUs = 15;
inline constexpr double kOwnKernelPart = 0.5;  // of the overhead of an operation

struct PublishedPoint {
  std::string model;
  int nodes = 1;
  double expert_bits = 0;  // per weight of the experts
  double other_bits = 0;
  double measured_tok_s = 0;
  // The cost of a token as the measured software divides it...
  double bytes = 0;  // read by one machine
  double kernels = 0;
  double exchanges = 0;
  // ...and as lockstep does.
  double own_bytes = 0;
  double own_latent_bytes = 0;  // read additionally by one machine if the latents stay whole
  double own_exchanges = 0;
  double own_latent_exchanges = 0;  // additional ones if the latents are cut
};

struct PublishedData {
  double bandwidth_bytes_per_us = 0;
  std::vector<PublishedPoint> points;
};

// kCorrupt for invalid JSON, kInvalidArgument with the key of a missing or invalid value.
Result<PublishedData> parse_published(std::string_view text);

struct CheckedPoint {
  PublishedPoint point;
  double predicted_tok_s = 0;
  double own_cut_tok_s = 0;  // with lockstep's cut
  double own_tok_s = 0;      // also with its overhead, as above

  double error() const { return predicted_tok_s / point.measured_tok_s - 1; }
};

struct CheckResult {
  PublishedConstants constants;
  std::vector<CheckedPoint> points;  // in the order of the file
  double rms = 0;                    // of the errors
  double worst = 0;
};

CheckResult check_published(const PublishedData& data, const PublishedConstants& constants);

// The constants with the least squared errors of the logarithms, starting from `start`.
// kInvalidArgument if the points do not determine all three.
Result<PublishedConstants> fit_published(const PublishedData& data,
                                         const PublishedConstants& start);

}  // namespace lockstep

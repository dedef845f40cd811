// The planner's time of a token against published decode speeds of real clusters, for `lockstep
// plan --check FILE`. The file names the machine's bandwidth, the models' shapes and what was
// measured (tests/data/cluster); the constants are those of the shipped profile, or fitted to the
// file. The measured software leaves the LM head, the projections to the latents and the router
// whole on every machine; what lockstep's own cut would reach is told beside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planner/profiles.h"

namespace lockstep {

// What-if for our own software on those machines: goals, not measurements.
inline constexpr double kOwnExchangeUs = 15;
inline constexpr double kOwnKernelPart = 0.5;  // of the overhead of an operation

struct PublishedPoint {
  std::string model;
  int nodes = 1;
  double expert_bits = 0;  // of a weight of the experts
  double other_bits = 0;
  double measured_tok_s = 0;
  // What a token costs as the measured software divides it...
  double bytes = 0;  // that one machine reads
  double kernels = 0;
  double exchanges = 0;
  // ...and as lockstep does.
  double own_bytes = 0;
  double own_latent_bytes = 0;  // which one machine reads more where the latents stay whole
  double own_exchanges = 0;
  double own_latent_exchanges = 0;  // more where the latents are cut
};

struct PublishedData {
  double bandwidth_bytes_per_us = 0;
  std::vector<PublishedPoint> points;
};

// kCorrupt for what is no JSON, kInvalidArgument with the key of what is missing or makes no sense.
Result<PublishedData> parse_published(std::string_view text);

struct CheckedPoint {
  PublishedPoint point;
  double predicted_tok_s = 0;
  double own_cut_tok_s = 0;  // with lockstep's cut
  double own_tok_s = 0;      // and with its overhead, as above

  double error() const { return predicted_tok_s / point.measured_tok_s - 1; }
};

struct CheckResult {
  PublishedConstants constants;
  std::vector<CheckedPoint> points;  // in the order of the file
  double rms = 0;                    // of the errors
  double worst = 0;
};

CheckResult check_published(const PublishedData& data, const PublishedConstants& constants);

// The constants with the least squares of the logarithms' errors, starting from `start`.
// kInvalidArgument where the points do not tell the three apart.
Result<PublishedConstants> fit_published(const PublishedData& data,
                                         const PublishedConstants& start);

}  // namespace lockstep

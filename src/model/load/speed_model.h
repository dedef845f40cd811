// Predicts the time per token on a cluster, from what a token reads and a few measured constants:
//
//   t = (cut / N + whole) / rate + kernels * kernel time + exchanges * exchange time + hops
//
// The N ranks of a stage divide the cut bytes; each reads the whole ones. For `lockstep bench
// parallel` and for choosing a placement. Pure arithmetic; one stream, one token after the other.
#pragma once

#include "model/config/config.h"
#include "model/load/model_summary.h"

namespace lockstep {

// The cost of one token, independent of machines. Bytes are of all layers together.
struct TokenCosts {
  double cut_bytes = 0;    // weights and state that tensor parallelism divides
  double whole_bytes = 0;  // read by each rank of a stage
  double kernels = 0;      // operations in all layers
  double layers = 0;
  int hidden = 0;
  double vectors = 1;  // of `hidden` numbers in the exchange of a sum, on average
};

// A machine's constants with the number of threads it runs.
struct MachineSpeed {
  double read_bytes_per_us = 0;  // reached by the kernels
  double kernel_us = 0;          // time of an operation besides reading
};

struct LinkSpeed {
  double exchange_us = 0;   // of one all-reduce of a token's hidden state, without delay
  double delay_us = 0;      // extra, for each message
  double bytes_per_us = 0;  // 0: no limit
};

// `ranks` machines of equal speed in `stages` stages of equal size.
struct Parallel {
  int ranks = 1;
  int stages = 1;
};

// Divides the `token_bytes` of `summary` except for routers and norms; no state (short prompts).
TokenCosts token_costs(const ModelConfig& config, const ModelSummary& summary);

// Sequential messages per token: exchanges inside stages, and hops.
double message_count(const TokenCosts& costs, Parallel parallel);

double token_us(const TokenCosts& costs, const MachineSpeed& machine, const LinkSpeed& link,
                Parallel parallel);

// The speed of a machine that alone takes `measured_us` per token.
MachineSpeed machine_speed(const TokenCosts& costs, double measured_us, double kernel_us);

}  // namespace lockstep

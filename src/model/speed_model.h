// How long a token takes on a cluster, from what a token reads and from a few measured constants:
//
//   t = (cut / N + whole) / rate + kernels * kernel time + exchanges * exchange time + hops
//
// N ranks of a stage divide the cut bytes, all read the whole ones. For `lockstep bench parallel`
// and for choosing a placement. Pure arithmetic; one stream, one token after the other.
#pragma once

#include "model/config.h"
#include "model/model_summary.h"

namespace lockstep {

// What one token costs, whatever the machines. Bytes are of all layers together.
struct TokenCosts {
  double cut_bytes = 0;    // weights and state that tensor parallelism divides
  double whole_bytes = 0;  // that each rank of a stage reads
  double kernels = 0;      // operations of all layers
  double layers = 0;
  int hidden = 0;
};

// Constants of a machine with the threads that it runs.
struct MachineSpeed {
  double read_bytes_per_us = 0;  // that the kernels reach
  double kernel_us = 0;          // what an operation takes besides reading
};

struct LinkSpeed {
  double exchange_us = 0;   // of one all-reduce of a token's hidden state, without delay
  double delay_us = 0;      // of each message beyond that
  double bytes_per_us = 0;  // 0: no limit
};

// `ranks` machines of the same speed in `stages` stages of the same size.
struct Parallel {
  int ranks = 1;
  int stages = 1;
};

// With `token_bytes` of `summary` divided but for routers and norms, and no state (short prompts).
TokenCosts token_costs(const ModelConfig& config, const ModelSummary& summary);

// Messages that follow each other within a token: exchanges inside stages, and hops.
double message_count(const TokenCosts& costs, Parallel parallel);

double token_us(const TokenCosts& costs, const MachineSpeed& machine, const LinkSpeed& link,
                Parallel parallel);

// The speed of a machine that takes `measured_us` for a token alone.
MachineSpeed machine_speed(const TokenCosts& costs, double measured_us, double kernel_us);

}  // namespace lockstep
